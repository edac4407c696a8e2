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
func lockPath(escaped string, hasVerb bool) (name, verb string, p *httpapi.Problem) {
	if hasVerb {
		i := strings.LastIndexByte(escaped, '/')
		if i < 0 {
			return "", "", httpapi.New(httpapi.NotFound, "the path ends in the name of the lock: add a call, such as /acquire or /hold")
		}
		escaped, verb = escaped[:i], escaped[i+1:]
	}
	for segment := range strings.SplitSeq(escaped, "/") {
		if segment == "." || segment == ".." {
			return "", "", httpapi.New(httpapi.Invalid, "a segment of the path is "+segment+", which proxies and clients resolve: write each dot as %2e if it is part of the name")
		}
	}
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return "", "", httpapi.New(httpapi.Invalid, "the name of the lock is escaped wrongly: write a % as %25")
	}
	if err := store.CheckName(name); err != nil {
		return "", "", httpapi.ProblemOf(err)
	}
	return name, verb, nil
}
