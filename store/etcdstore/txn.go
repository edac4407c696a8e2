package etcdstore

import (
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// txn is a transaction that can be repeated: a second one finds what the first one did. It
// has the messages of etcd's protocol, which the library would make of its own types in
// each try.
type txn struct {
	ifs       []condition
	then, els []operation
}

type (
	condition = *etcdserverpb.Compare
	operation = *etcdserverpb.RequestOp
)

func isGone(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound) }

func isFull(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) }

// mostOps is how many operations a transaction can have by default (--max-txn-ops).
const mostOps = 128

func absent(key string) condition { return created(key, 0) }

func created(key string, at int64) condition {
	return createRevision(key, "", etcdserverpb.Compare_EQUAL, at)
}

// createRevision compares that of a key, or of all keys before end if that is not empty.
// If there is none, it compares 0.
func createRevision(key, end string, is etcdserverpb.Compare_CompareResult, at int64) condition {
	return &etcdserverpb.Compare{
		Key: []byte(key), RangeEnd: []byte(end), Target: etcdserverpb.Compare_CREATE, Result: is,
		TargetUnion: &etcdserverpb.Compare_CreateRevision{CreateRevision: at},
	}
}

// createRevisions compares those of all keys with a prefix.
func createRevisions(prefix string, is etcdserverpb.Compare_CompareResult, at int64) condition {
	return createRevision(prefix, clientv3.GetPrefixRangeEnd(prefix), is, at)
}

// modRevision is createRevision for the revision of the last change.
func modRevision(key, end string, is etcdserverpb.Compare_CompareResult, at int64) condition {
	return &etcdserverpb.Compare{
		Key: []byte(key), RangeEnd: []byte(end), Target: etcdserverpb.Compare_MOD, Result: is,
		TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: at},
	}
}

// nobody is met if no key has the prefix.
func nobody(prefix string) condition {
	return createRevisions(prefix, etcdserverpb.Compare_EQUAL, 0)
}

// newest is met if no key with the prefix is newer.
func newest(prefix string, at int64) condition {
	return createRevisions(prefix, etcdserverpb.Compare_LESS, at+1)
}

// unchanged is met if no key with the prefix was made or changed since that revision.
func unchanged(prefix string, since int64) condition {
	return modRevision(prefix, clientv3.GetPrefixRangeEnd(prefix), etcdserverpb.Compare_LESS, since+1)
}

// modified is met if the key was last changed at that revision.
func modified(key string, at int64) condition {
	return modRevision(key, "", etcdserverpb.Compare_EQUAL, at)
}

func rangeOp(r *etcdserverpb.RangeRequest) operation {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: r}}
}

func putOp(r *etcdserverpb.PutRequest) operation {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: r}}
}

// get reads a key with its value.
func get(key string) operation { return rangeOp(&etcdserverpb.RangeRequest{Key: []byte(key)}) }

func rangeOf(prefix string) *etcdserverpb.RangeRequest {
	return &etcdserverpb.RangeRequest{Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix))}
}

// getAll reads all keys with a prefix.
func getAll(prefix string) operation { return rangeOp(rangeOf(prefix)) }

// byAge reads at most so many of the oldest places, and the number of all.
func byAge(prefix string, most int64) operation {
	r := rangeOf(prefix)
	r.SortTarget, r.SortOrder, r.Limit = etcdserverpb.RangeRequest_CREATE, etcdserverpb.RangeRequest_ASCEND, most
	return rangeOp(r)
}

// before reads the keys of the place that was created at that revision, and of the one before it.
func before(prefix string, at int64) operation {
	r := rangeOf(prefix)
	r.SortTarget, r.SortOrder, r.Limit = etcdserverpb.RangeRequest_CREATE, etcdserverpb.RangeRequest_DESCEND, 2
	r.MaxCreateRevision, r.KeysOnly = at, true
	return rangeOp(r)
}

// put makes or replaces a key, and attaches it to a lease.
func put(key, value string, lease clientv3.LeaseID) operation {
	return putOp(&etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: int64(lease)})
}

// replace gives a key that is there a new value.
func replace(key, value string) operation {
	return putOp(&etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value), IgnoreLease: true})
}

// touch gives a key a new revision and nothing else.
func touch(key string) operation {
	return putOp(&etcdserverpb.PutRequest{Key: []byte(key), IgnoreValue: true, IgnoreLease: true})
}

func remove(key string) operation {
	r := &etcdserverpb.DeleteRangeRequest{Key: []byte(key)}
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}
}

// logged makes a transaction that only reads go through the log, next to a key that is there. It
// deletes a key that never is, which changes nothing, not even the revision.
func logged(key string) operation { return remove(key + "!") }

func nested(t txn) operation {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestTxn{RequestTxn: &etcdserverpb.TxnRequest{Compare: t.ifs, Success: t.then, Failure: t.els}}}
}
