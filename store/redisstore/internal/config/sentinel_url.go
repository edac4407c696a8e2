package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// watched is the topology of servers that sentinels watch:
//
//	redis-sentinel://user:password@sentinel:26379,sentinel:26379,.../db?master=mymaster
//
// The hosts are the sentinels; user, password and database are the master's.
var watched = topology{
	scheme: "redis-sentinel", port: "26379", without: []string{"fsync", "next"},
	texts: func(o *Config) map[string]*string {
		return map[string]*string{"master": &o.Master, "sentinel_username": &o.SentinelUsername, "sentinel_password": &o.SentinelPassword}
	},
}

const onlyIndependent = "it is for independent servers only"

// check refuses options that contradict each other or the topology.
func (t topology) check(addrs []Address, o Config) error {
	if t.scheme != watched.scheme {
		if o.Master != "" || o.SentinelUsername != "" || o.SentinelPassword != "" {
			return errors.New("redis: Master, SentinelUsername and SentinelPassword are for sentinels: use their addresses, as in redis-sentinel://s1,s2,s3?master=mymaster")
		}
		return nil
	}
	switch {
	case o.Master == "":
		return errors.New("redis: the name of the master is missing: add master= with the name from the sentinels' configuration, as in redis-sentinel://s1,s2,s3?master=mymaster")
	case len(o.Next) > 0:
		return fmt.Errorf("redis: Next does not go with %s://: %s", t.scheme, onlyIndependent)
	case o.FsyncAlways:
		return fmt.Errorf("redis: FsyncAlways does not go with %s://: %s", t.scheme, onlyIndependent)
	case o.SentinelUsername != "" && o.SentinelPassword == "":
		return errors.New("redis: the sentinels' user has no password: add sentinel_password")
	}
	alike := func(a Address) bool { a.Host = addrs[0].Host; return a == addrs[0] }
	if !slices.ContainsFunc(addrs, func(a Address) bool { return !alike(a) }) {
		return nil
	}
	return errors.New("redis: the URLs of the sentinels differ in user, password, database or TLS: these belong to the master and must be the same in all URLs")
}

// MustBeIndependent refuses servers that are not independent, before anything is sent.
func MustBeIndependent(what, url string) error {
	if t := topologyOf(strings.Fields(url)); t.scheme != independent.scheme {
		return Invalid(fmt.Errorf("redis: %s is not for %s://: %s", what, t.scheme, onlyIndependent))
	}
	return nil
}
