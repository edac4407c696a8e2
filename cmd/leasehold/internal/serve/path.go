package serve

import (
	"net/url"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
)

// lockPath is what a path below /v1/locks/ names. The path is still escaped, so that a slash
// of a name can be told from one of the path. Not that it matters: all but the last segment of
// a call is the name.
func lockPath(escaped string, hasVerb bool) (name, verb string, err error) {
	if hasVerb {
		i := strings.LastIndexByte(escaped, '/')
		if i < 0 {
			return "", "", refuse(httpapi.NotFound, "the path ends in the name of the lock: add a call, such as /acquire or /hold")
		}
		escaped, verb = escaped[:i], escaped[i+1:]
	}
	for segment := range strings.SplitSeq(escaped, "/") {
		if segment == "." || segment == ".." {
			return "", "", invalid("a segment of the path is " + segment + ", which proxies and clients resolve: write each dot as %2e if it is part of the name")
		}
	}
	name, err = url.PathUnescape(escaped)
	if err != nil {
		return "", "", invalid("the name of the lock is escaped wrongly: write a % as %25")
	}
	return name, verb, store.CheckName(name)
}
