package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// clustered is the topology of one Redis Cluster. The URLs name some of its members,
// which know all others.
var clustered = topology{scheme: "redis-cluster", port: "6379"}

// NamesCluster reports whether one of the URLs names a cluster.
func NamesCluster(url string) bool {
	return slices.ContainsFunc(strings.Fields(url), clustered.of)
}

// ParseCluster parses the URL of a cluster, or several separated by white space. It fills
// in the defaults, and returns the MaxTTL that was set. Its errors match store.ErrInvalid.
func ParseCluster(url string, o Config) (seeds []Address, opts Config, maxTTL time.Duration, err error) {
	seeds, opts, err = parseCluster(strings.Fields(url), o)
	if err == nil {
		maxTTL = opts.MaxTTL
		opts, err = opts.WithDefaults()
	}
	return seeds, opts, maxTTL, Invalid(err)
}

func parseCluster(urls []string, o Config) ([]Address, Config, error) {
	if !slices.ContainsFunc(urls, clustered.of) {
		return nil, o, fmt.Errorf("redis: the URL of a cluster starts with %s:// or %s://", clustered.scheme, clustered.secure())
	}
	seeds, opts, err := clustered.parse(urls, o)
	if err != nil {
		return nil, opts, err
	}
	for _, seed := range seeds {
		if seed.db != 0 {
			return nil, opts, fmt.Errorf("redis: a cluster has no database %d, only 0: leave it out of the URL of %s", seed.db, seed.Host)
		}
	}
	switch {
	case len(opts.Next) > 0:
		return nil, opts, errors.New("redis: next is for independent servers: a cluster changes its members by itself; leave it out")
	case opts.FsyncAlways:
		return nil, opts, errors.New("redis: fsync=always is for locks that survive every crash, which a cluster cannot guarantee: leave it out")
	}
	return seeds, opts, nil
}
