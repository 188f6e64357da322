import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** A peer of package interop: Peer KIND HOST:PORT. Package peer has the protocol. */
public final class Peer {
    private final Library library;
    private final StringRedisTemplate redis;
    private final Map<String, Library.Held> held = new HashMap<>();

    private Peer(Library library, StringRedisTemplate redis) {
        this.library = library;
        this.redis = redis;
    }

    private static Library open(String kind, String address, LettuceConnectionFactory connections) {
        return switch (kind) {
            case "spring-spin" -> new SpringLibrary(connections, RedisLockType.SPIN_LOCK);
            case "spring-pubsub" -> new SpringLibrary(connections, RedisLockType.PUB_SUB_LOCK);
            case "shedlock" -> new ShedLockLibrary(connections, false);
            case "shedlock-safe" -> new ShedLockLibrary(connections, true);
            case "redisson" -> new RedissonLibrary(address, RedissonLibrary.Kind.LEASE);
            case "redisson-watchdog" -> new RedissonLibrary(address, RedissonLibrary.Kind.WATCHDOG);
            case "redisson-cluster" -> new RedissonLibrary(address, RedissonLibrary.Kind.CLUSTER);
            case "redisson-fenced" -> new RedissonLibrary(address, RedissonLibrary.Kind.FENCED);
            case "redisson-spin" -> new RedissonLibrary(address, RedissonLibrary.Kind.SPIN);
            case "redisson-fair" -> new RedissonLibrary(address, RedissonLibrary.Kind.FAIR);
            case "redisson-write" -> new RedissonLibrary(address, RedissonLibrary.Kind.WRITE);
            default -> throw new IllegalArgumentException(kind);
        };
    }

    private String acquire(String name, long ttl, long wait) throws Exception {
        Library.Held lock = library.acquire(name, ttl, wait);
        if (lock == null) {
            return "no";
        }
        held.put(name, lock);
        return "ok";
    }

    private String hammer(String name, long ttl, long until) throws Exception {
        String inside = "inside:" + name;
        long cycles = 0;
        long violations = 0;
        long longest = 0;
        long begin = System.nanoTime();
        for (long left; (left = until - System.currentTimeMillis()) > 0; ) {
            Library.Held lock = library.acquire(name, ttl, left);
            longest = Math.max(longest, System.nanoTime() - begin);
            if (lock == null) {
                continue;
            }
            if (redis.opsForValue().increment(inside) != 1) {
                violations++;
            }
            cycles++;
            redis.opsForValue().decrement(inside);
            lock.release();
            begin = System.nanoTime();
        }
        return "ok " + cycles + " " + violations + " " + longest / 1_000_000;
    }

    private String execute(String[] words) {
        try {
            return switch (words[0]) {
                case "acquire" -> acquire(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]));
                case "renew" -> held.get(words[1]).renew(Long.parseLong(words[2])) ? "ok" : "no";
                case "release" -> held.get(words[1]).release() ? "ok" : "no";
                case "hammer" -> hammer(words[1], Long.parseLong(words[2]), Long.parseLong(words[3]));
                default -> throw new UnsupportedOperationException(words[0]);
            };
        } catch (Exception e) {
            StringBuilder text = new StringBuilder("error");
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                text.append(' ').append(cause.toString().replaceAll("\\s+", " "));
            }
            return text.toString();
        }
    }

    private static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    /** Reads commands. The process ends with its input, whatever it waits for. */
    private static void read(BlockingQueue<String> commands) {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line; (line = in.readLine()) != null; ) {
                commands.add(line);
            }
        } catch (java.io.IOException e) {
            System.err.println(e);
        }
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] args) throws Exception {
        String[] address = args[1].split(":");
        LettuceConnectionFactory connections =
                new LettuceConnectionFactory(address[0], Integer.parseInt(address[1]));
        connections.afterPropertiesSet();
        connections.start();
        Peer peer = new Peer(open(args[0], args[1], connections), new StringRedisTemplate(connections));
        BlockingQueue<String> commands = new LinkedBlockingQueue<>();
        new Thread(() -> read(commands)).start();
        System.out.println("ready");
        while (true) { // on one thread: a lock belongs to its thread
            String[] words = commands.take().trim().split("\\s+");
            long begin = micros();
            String outcome = peer.execute(words);
            System.out.println(begin + " " + micros() + " " + outcome);
        }
    }
}
