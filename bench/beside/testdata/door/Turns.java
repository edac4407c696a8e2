import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.provider.redis.jedis4.JedisLockProvider;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.exceptions.JedisException;

/** Takes turns at a lock of the Redis door with ShedLock: see door_test.go. */
class Turns {
    public static void main(String[] args) throws Exception {
        String[] key = args[2].split(":", 3); // job-lock:ENVIRONMENT:NAME
        Duration ttl = Duration.ofMillis(Long.parseLong(args[3])), brief = Duration.ofMillis(Long.parseLong(args[4]));
        Path room = Path.of(args[5]), stop = Path.of(args[5] + ".stop"), turns = Path.of(args[6]);
        try (var pool = new JedisPool(args[0], Integer.parseInt(args[1]))) {
            var provider = new JedisLockProvider(pool, key[1], true);
            for (; !Files.exists(stop); Thread.sleep(5)) {
                try {
                    long asked = System.nanoTime();
                    var lock = provider.lock(new LockConfiguration(Instant.now(), key[2], ttl, Duration.ZERO));
                    if (lock.isEmpty()) {
                        continue;
                    }
                    if (System.nanoTime() - asked < brief.toNanos()) {
                        Files.createFile(room);
                        Thread.sleep(2);
                        Files.delete(room);
                        Files.writeString(turns, ".", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                    }
                    lock.get().unlock();
                } catch (JedisException | net.javacrumbs.shedlock.support.LockException e) {
                    // the server was killed
                }
            }
        }
    }
}
