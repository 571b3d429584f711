import io.moquette.broker.Server;
import io.moquette.broker.config.MemoryConfig;
import java.util.Properties;

/** A Moquette on a port of this machine; its sessions end with it. */
public final class Broker {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("host", "127.0.0.1");
        properties.setProperty("port", arguments[0]);
        properties.setProperty("allow_anonymous", "true");
        properties.setProperty("persistence_enabled", "false");
        properties.setProperty("telemetry_enabled", "false");
        properties.setProperty("netty.mqtt.message_size", "1048576");
        new Server().startServer(new MemoryConfig(properties));
        Thread.currentThread().join();
    }
}
