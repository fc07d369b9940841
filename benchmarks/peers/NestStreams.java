import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

/**
 * The job of `nest-camera-stats` for Kafka Streams: people seen per zip code and hour, each sighting once.
 *
 * <p>Arguments: Kafka's address, source topic, result topic (also the application's id), state folder, grace period in seconds, and the CSV
 * file of device_id and zip_code; then options. With "at-once", each sighting makes a row of the result at once; otherwise rows wait in a cache
 * for the next commit, and in the producer for 100 ms. With "exactly-once", that is the processing guarantee; the default is at least once.
 *
 * <p>Keys and values of the result are those of topic nest-camera-stats. A home's documents are on one partition, so a repeated report is
 * found where the first one was; only the count needs a repartition. All other settings are the defaults, but for a thread per core and a commit a second, which makes results visible (the default is 30 s).
 */
public class NestStreams {
    record Document(Devices devices) {}

    record Devices(Map<String, Camera> cameras) {}

    record Camera(String device_id, Event last_event) {}

    record Event(boolean has_person, String start_time) {}

    /** A record, and its document: null if it is none. */
    record Read(byte[] value, Document document) {
        private static final ObjectReader READER =
                new ObjectMapper()
                        .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
                        .configure(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, true)
                        .readerFor(Document.class);

        static Read of(byte[] value) {
            try {
                Document document = READER.readValue(value);
                return new Read(value, document.devices() == null ? null : document);
            } catch (IOException error) {
                return new Read(value, null);
            }
        }
    }

    /** Document to sightings: zip code, no value, at the time of the sighting. */
    static class Sightings extends ContextualProcessor<byte[], Read, String, byte[]> {
        static final String SEEN = "seen";
        private static final byte[] NOTHING = {};
        private final Map<String, String> zipCodes;
        private WindowStore<String, byte[]> seen;

        Sightings(Map<String, String> zipCodes) {
            this.zipCodes = zipCodes;
        }

        @Override
        public void init(ProcessorContext<String, byte[]> context) {
            super.init(context);
            seen = context.getStateStore(SEEN);
        }

        @Override
        public void process(Record<byte[], Read> record) {
            Document document = record.value().document();
            if (document.devices().cameras() == null) return;
            for (Camera camera : document.devices().cameras().values()) {
                if (camera.last_event() == null || !camera.last_event().has_person()) continue;
                long time = Instant.parse(camera.last_event().start_time()).toEpochMilli();
                if (seen.fetch(camera.device_id(), time) != null) continue;
                seen.put(camera.device_id(), NOTHING, time);
                context().forward(new Record<>(zipCodes.getOrDefault(camera.device_id(), "unknown"), NOTHING, time));
            }
        }
    }

    static KeyValue<String, String> row(Windowed<String> group, long count) {
        String start = "\"start\":\"" + group.window().startTime() + '"', end = "\"end\":\"" + group.window().endTime() + '"';
        String zipCode = "\"zip_code\":\"" + group.key() + '"';
        return KeyValue.pair(
                "{\"window\":{" + end + "," + start + "}," + zipCode + "}",
                "{" + zipCode + ",\"window\":{" + start + "," + end + "},\"count\":" + count + "}");
    }

    public static void main(String[] arguments) throws IOException {
        String kafka = arguments[0], source = arguments[1], result = arguments[2], stateFolder = arguments[3];
        Duration hour = Duration.ofHours(1), grace = Duration.ofSeconds(Long.parseLong(arguments[4]));
        Map<String, String> zipCodes = new HashMap<>();
        Files.lines(Path.of(arguments[5])).skip(1).map(line -> line.split(",")).forEach(row -> zipCodes.put(row[0], row[1]));

        StreamsBuilder builder = new StreamsBuilder();
        var store = Stores.persistentWindowStore(Sightings.SEEN, hour.plus(grace), Duration.ofMillis(1), false);
        builder.addStateStore(Stores.windowStoreBuilder(store, Serdes.String(), Serdes.ByteArray()).withCachingEnabled());
        KStream<byte[], Read> documents =
                builder.stream(source, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).mapValues(Read::of);
        documents
                .filter((key, read) -> read.document() == null)
                .mapValues(Read::value)
                .to(result + "-dead-letters", Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        documents
                .filter((key, read) -> read.document() != null)
                .process(() -> new Sightings(zipCodes), Sightings.SEEN)
                .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
                .windowedBy(TimeWindows.ofSizeAndGrace(hour, grace))
                .count(Materialized.with(Serdes.String(), Serdes.Long()))
                .toStream()
                .map(NestStreams::row)
                .to(result, Produced.with(Serdes.String(), Serdes.String()));

        Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, result);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, kafka);
        config.put(StreamsConfig.STATE_DIR_CONFIG, stateFolder);
        config.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Runtime.getRuntime().availableProcessors());
        config.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 1000);
        List<String> options = List.of(arguments).subList(6, arguments.length);
        if (options.contains("exactly-once")) config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        if (options.contains("at-once")) {
            config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
            config.put(StreamsConfig.producerPrefix("linger.ms"), 0);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) Runtime.getRuntime().halt(1);
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(3))));
        streams.start();
    }
}
