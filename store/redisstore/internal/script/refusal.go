package script

import (
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// advices say what each error reply means for a lock, and what to do.
var advices = map[resp.Code]struct {
	advice  string
	outcome store.Outcome
}{
	resp.WrongType:      {"the key holds something that is not a lock: choose another name, or delete the key", store.WrongType},
	resp.Loading:        {"the server is still reading its data: wait until it is up", store.Loading},
	resp.WrongPassword:  {"check the user name and the password", store.Refused},
	resp.NoAuth:         {"the server requires a password: put it into the URL, as in redis://:PASSWORD@HOST", store.Refused},
	resp.Denied:         {"the user lacks a permission: \"leasehold acl\" prints the rule that it needs", store.Refused},
	resp.OutOfMemory:    {"the server is out of memory (maxmemory)", store.Refused},
	resp.ReadOnly:       {"the server is a replica: use its master, or independent masters for a quorum", store.Refused},
	resp.CannotSave:     {"the server refuses writes because it cannot save its data", store.Refused},
	resp.TooFewReplicas: {"the server refuses writes because it has too few replicas (min-replicas-to-write)", store.Unsettled},
	resp.MasterDown:     {"the server is a replica that lost its master", store.Refused},
	resp.NoCluster:      {"the server is not in a cluster: use a redis:// URL", store.Refused},
	resp.TooManyClients: {"the server has no room for another connection: raise its maxclients, or find out who opens so many", store.Unreachable},
	resp.Busy:           {"the server is busy running another client's script", store.TimedOut},
}

// Classify turns an error reply into an outcome and an error that says what to do.
func Classify(reply *resp.Error) (store.Outcome, error) {
	if d := resp.RedirectionOf(reply); d != nil {
		if d.Kind == resp.RedirectMoved {
			return store.Refused, fmt.Errorf("%w (the server is part of a cluster, which cannot be a node: use a redis-cluster:// URL, or independent servers)", d)
		}
		why := "the lock's slot is moving to another server"
		if reply.Code() == resp.ClusterDown {
			why = "the server's cluster is down"
		}
		return store.Unsettled, fmt.Errorf("%w (%s)", d, why)
	}
	if reply.Code() == resp.Protected { // whose text fills a screen
		return store.Refused, errors.New("protected mode: the server has no password, and so serves only clients on its own machine: set one (requirepass), and put it into the URL")
	}
	if a, ok := advices[reply.Code()]; ok {
		return a.outcome, fmt.Errorf("%w (%s)", reply, a.advice)
	}
	return store.Refused, reply
}

// IsDenied reports whether err is an error reply about a missing permission.
func IsDenied(err error) bool { return resp.CodeOf(err) == resp.Denied }

// Unusable is why no lock is kept on a server that answers. It counts as refused.
type Unusable struct{ why string }

// NewUnusable returns an error to compare with errors.Is.
func NewUnusable(why string) error { return &Unusable{why} }

func (e *Unusable) Error() string { return e.why }
