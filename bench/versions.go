package main

import (
	"path"
	"runtime/debug"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/locks"
)

// drivers are the modules of the Redis clients that peers use.
var drivers = []string{"github.com/redis/go-redis/v9", "github.com/redis/rueidis", "github.com/redis/rueidis/rueidiscompat"}

// moduleVersions returns the versions of the peers and of their drivers.
func moduleVersions(kinds []locks.Kind) map[string]string {
	wanted := map[string]bool{}
	for _, k := range kinds {
		wanted[k.Module] = true
		if k.Role == locks.Peer && k.Engine == locks.Redis {
			for _, d := range drivers {
				wanted[d] = true
			}
		}
	}
	versions := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, m := range info.Deps {
		if !wanted[m.Path] {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		versions[moduleName(m.Path)] = m.Version
	}
	return versions
}

// moduleName returns the part of a module's path that names it.
func moduleName(p string) string {
	base := path.Base(p)
	if len(base) == 2 && base[0] == 'v' { // a major version
		p = strings.TrimSuffix(p, "/"+base)
	}
	return path.Base(path.Dir(p)) + "/" + path.Base(p)
}
