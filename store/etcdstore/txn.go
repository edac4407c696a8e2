package etcdstore

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// txn is a transaction that can be repeated: a second one finds what the first one did.
type txn struct {
	ifs       []clientv3.Cmp
	then, els []clientv3.Op
}

func isGone(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) }

func isFull(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) }

// mostRead is how many places are read at once to find the next owner.
const mostRead = 16

func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

func created(key string, at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", at)
}

// nobody is met if no key has the prefix.
func nobody(prefix string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "=", 0)
}

// alone is met if no key has the prefix, except perhaps key.
func alone(prefix, key string) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(prefix).WithRange(key), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(key+"\x00").WithRange(clientv3.GetPrefixRangeEnd(prefix)), "=", 0),
	}
}

// oldest is met if no key with the prefix is older than one that was created at that
// revision.
func oldest(prefix string, at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), ">", at-1)
}

// newest is met if no key with the prefix is newer.
func newest(prefix string, at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(prefix).WithPrefix(), "<", at+1)
}

// unchanged is met if no key with the prefix was made or changed since that revision.
func unchanged(prefix string, since int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(prefix).WithPrefix(), "<", since+1)
}

// modified is met if the key was last changed at that revision.
func modified(key string, at int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", at)
}

// byAge reads at most so many of the oldest places, and the number of all.
func byAge(prefix string, most int64) clientv3.Op {
	return clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(most))
}

// upTo reads the keys of the places up to one that was created at that revision, the
// oldest first.
func upTo(prefix string, at int64) clientv3.Op {
	return clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithMaxCreateRev(at), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
}

// touch gives a key a new revision and nothing else.
func touch(key string) clientv3.Op {
	return clientv3.OpPut(key, "", clientv3.WithIgnoreValue(), clientv3.WithIgnoreLease())
}
