package redisstore

import (
	"errors"
	"fmt"
)

// clustered is the topology of one Redis Cluster. The URLs name some of its members,
// which know all others.
var clustered = topology{scheme: "redis-cluster", port: "6379"}

// clusterURLs parses the URLs of a cluster.
func clusterURLs(urls []string, o *Options) ([]address, Options, error) {
	if o == nil {
		o = &Options{}
	}
	seeds, opts, err := clustered.parseURLs(urls, *o)
	if err != nil {
		return nil, opts, err
	}
	for _, seed := range seeds {
		if seed.db != 0 {
			return nil, opts, fmt.Errorf("redis: a cluster has no database %d, only 0: leave it out of the URL of %s", seed.db, seed.host)
		}
	}
	switch {
	case len(opts.Next) > 0:
		return nil, opts, errors.New("redis: next is for independent servers: a cluster changes its members by itself; leave it out")
	case opts.FsyncAlways:
		return nil, opts, errors.New("redis: fsync=always is for locks that survive every crash, which a cluster cannot guarantee: leave it out")
	}
	opts, err = opts.withDefaults()
	return seeds, opts, err
}
