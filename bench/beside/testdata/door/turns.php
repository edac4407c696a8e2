<?php
// Takes turns at a lock of the Redis door with Laravel's RedisLock: see door_test.go.
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

[, $host, $port, $key, $ttl, $brief, $room, $turns] = $argv;
$manager = new Illuminate\Redis\RedisManager(null, 'phpredis', ['default' => ['host' => $host, 'port' => $port, 'timeout' => 5.0, 'read_timeout' => 5.0]]);
while (!file_exists("$room.stop")) {
    usleep(5000);
    clearstatcache();
    try {
        $lock = new Illuminate\Cache\RedisLock($manager->connection(), $key, $ttl / 1000);
        $asked = hrtime(true);
        if (!$lock->acquire()) {
            continue;
        }
        if (hrtime(true) - $asked < $brief * 1e6) {
            $f = fopen($room, 'x');
            if (!$f) {
                exit(1);
            }
            fclose($f);
            usleep(2000);
            if (!unlink($room)) {
                exit(1);
            }
            file_put_contents($turns, '.', FILE_APPEND);
        }
        $lock->release();
    } catch (RedisException $e) {
        $manager->purge('default');
    }
}
