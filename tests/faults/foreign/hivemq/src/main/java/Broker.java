import com.hivemq.embedded.EmbeddedHiveMQ;
import java.nio.file.Files;
import java.nio.file.Path;

/** A HiveMQ CE on a port of this machine; its sessions end with it. */
public final class Broker {
    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("hivemq");
        for (String each : new String[] {"conf", "data", "extensions"}) {
            Files.createDirectory(folder.resolve(each));
        }
        Files.writeString(folder.resolve("conf/config.xml"), """
                <hivemq>
                  <listeners><tcp-listener>
                    <port>%s</port><bind-address>127.0.0.1</bind-address>
                  </tcp-listener></listeners>
                  <mqtt><queued-messages><max-queue-size>100000</max-queue-size></queued-messages></mqtt>
                  <persistence><mode>in-memory</mode></persistence>
                  <anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics>
                </hivemq>
                """.formatted(arguments[0]));
        EmbeddedHiveMQ.builder()
                .withConfigurationFolder(folder.resolve("conf"))
                .withDataFolder(folder.resolve("data"))
                .withExtensionsFolder(folder.resolve("extensions"))
                .build()
                .start()
                .join();
        Thread.currentThread().join();
    }
}
