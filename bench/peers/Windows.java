// Hazelcast's part of bench.peers: count, mean, maximum and numbers of each second of one topic, a JSON line a window.
// java -cp JARS Windows PORT TOPIC FOLDER GRACE, in ms; -1: windows go by arrival. Needs hazelcast and Paho's mqttv3.
import com.hazelcast.config.Config;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.internal.json.Json;
import com.hazelcast.internal.json.JsonObject;
import com.hazelcast.jet.aggregate.AggregateOperations;
import com.hazelcast.jet.config.JobConfig;
import com.hazelcast.jet.pipeline.Pipeline;
import com.hazelcast.jet.pipeline.Sinks;
import com.hazelcast.jet.pipeline.SourceBuilder;
import com.hazelcast.jet.pipeline.StreamStage;
import com.hazelcast.jet.pipeline.WindowDefinition;
import java.io.Serializable;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.eclipse.paho.client.mqttv3.MqttClient;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;

public class Windows {
    record Reading(long number, long time, double value) implements Serializable { }

    /** Messages of a session that the broker keeps; Paho acknowledges what is in the queue. */
    static class Topic implements MqttCallback {
        final LinkedBlockingQueue<Reading> waiting = new LinkedBlockingQueue<>(100_000);
        final MqttClient client;

        Topic(String port, String name) throws Exception {
            client = new MqttClient("tcp://127.0.0.1:" + port, "hazelcast", new MemoryPersistence());
            client.setCallback(this);
            MqttConnectOptions options = new MqttConnectOptions();
            options.setCleanSession(false);
            options.setAutomaticReconnect(true);
            if (!client.connectWithResult(options).getSessionPresent()) {
                client.subscribe(name, 1);
            }
            System.out.println("subscribed");
        }

        @Override public void messageArrived(String topic, MqttMessage message) throws Exception {
            JsonObject said = Json.parse(new String(message.getPayload())).asObject();
            waiting.put(new Reading(said.get("n").asLong(), said.get("t").asLong(), said.get("v").asDouble()));
        }

        @Override public void connectionLost(Throwable cause) { }

        @Override public void deliveryComplete(IMqttDeliveryToken token) { }
    }

    public static void main(String[] words) {
        Config config = new Config();
        config.getJetConfig().setEnabled(true).setCooperativeThreadCount(2);
        config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
        config.setProperty("hazelcast.phone.home.enabled", "false");
        String port = words[0], topic = words[1];
        var source = SourceBuilder.stream("mqtt", context -> new Topic(port, topic))
            .<Reading>fillBufferFn((from, buffer) -> {
                Reading next;
                while (buffer.size() < 1024 && (next = from.waiting.poll()) != null) {
                    buffer.add(next);
                }
            })
            .destroyFn(from -> from.client.close(true))
            .build();
        long grace = Long.parseLong(words[3]);
        Pipeline pipeline = Pipeline.create();
        var read = pipeline.readFrom(source);
        StreamStage<Reading> timed = grace < 0
            ? read.withIngestionTimestamps() : read.withTimestamps(Reading::time, grace);
        timed.window(WindowDefinition.tumbling(1000))
            .aggregate(AggregateOperations.allOf(
                AggregateOperations.averagingDouble(Reading::value),
                AggregateOperations.maxBy((one, other) -> Double.compare(one.value(), other.value())),
                AggregateOperations.mapping(Reading::number, AggregateOperations.<Long>toList()),
                (mean, most, numbers) -> line(mean, most, numbers)))
            .map(result -> result.result())
            .writeTo(Sinks.<String>files(words[2]));
        var hazelcast = Hazelcast.newHazelcastInstance(config);
        hazelcast.getJet().newJob(pipeline, new JobConfig()).join();
    }

    static String line(double mean, Reading most, List<Long> numbers) {
        return "{\"total\": " + numbers.size() + ", \"mean\": " + mean + ", \"peak\": " + most.value()
            + ", \"numbers\": " + numbers + "}";
    }
}
