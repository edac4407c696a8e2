package zk

import "encoding/binary"

// Codes of requests in ZooKeeper's protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSync            = 9
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opAuth            = 100
	opSetWatches      = 101
	opClose           = -11
)

// Request is one request to a server.
type Request struct {
	// Path is the node that the request is about. A Multi has none.
	Path string
	op   int32
	body []byte
	// watch is the one that the request sets, or nil.
	watch *Watch
}

// List asks for the names of a node's children, and whether it has data.
func List(path string) Request { return reads(opGetChildren2, path, 0) }

// Read asks for what a node says.
func Read(path string) Request { return reads(opGetData, path, 0) }

func reads(op int32, path string, watch byte) Request {
	return Request{Path: path, op: op, body: append(str(path), watch)}
}

// watchAgain asks the server to announce what has changed in these nodes since a transaction, and
// otherwise to watch them.
func watchAgain(since int64, paths []string) Request {
	b := appendInt(appendLong(nil, since), int32(len(paths)))
	for _, p := range paths {
		b = appendBytes(b, p)
	}
	return Request{op: opSetWatches, body: appendLong(b, 0)} // no nodes that do not exist, and no lists
}

// GetACL asks for the rights to a node.
func GetACL(path string) Request { return Request{Path: path, op: opGetACL, body: str(path)} }

// Sync asks the server to catch up with the leader before it answers.
func Sync(path string) Request { return Request{Path: path, op: opSync, body: str(path)} }

// AnyVersion is the version of a node that does not matter.
const AnyVersion = -1

// Delete deletes a node that has that version.
func Delete(path string, version int32) Request {
	return Request{Path: path, op: opDelete, body: appendInt(str(path), version)}
}

// Check does nothing, and fails if there is no such node of that version. It is part of a Multi.
func Check(path string, version int32) Request {
	return Request{Path: path, op: opCheck, body: appendInt(str(path), version)}
}

// Set replaces the data of a node that has that version.
func Set(path string, data []byte, version int32) Request {
	return Request{Path: path, op: opSetData, body: appendInt(appendBytes(str(path), data), version)}
}

// Sets reports whether the request is a Set.
func (r Request) Sets() bool { return r.op == opSetData }

// Mode is what kind of node Create makes.
type Mode int32

// The modes, as in ZooKeeper's protocol.
const (
	Persistent          Mode = 0
	Ephemeral           Mode = 1
	EphemeralSequential Mode = 3
	Container           Mode = 4 // the servers remove it when it has been empty for a while
)

// Create makes a node.
func Create(path string, data []byte, acl []ACL, mode Mode) Request {
	b := appendBytes(appendBytes(make([]byte, 0, 64+len(path)+len(data)), path), data)
	b = appendInt(b, int32(len(acl)))
	for _, a := range acl {
		b = appendBytes(appendBytes(appendInt(b, a.Perms), a.Scheme), a.ID)
	}
	op := int32(opCreate2) // its answer has the zxid
	if mode == Container {
		op = opCreateContainer
	}
	return Request{Path: path, op: op, body: appendInt(b, int32(mode))}
}

// Multi is one transaction of Check, Set, Delete and Create. All of them are done, or none.
func Multi(of ...Request) Request {
	var b []byte
	for _, r := range of {
		b = append(multiHeader(b, r.op, 0), r.body...)
	}
	return Request{op: opMulti, body: multiHeader(b, -1, 1)}
}

func multiHeader(b []byte, op int32, last byte) []byte {
	return appendInt(append(appendInt(b, op), last), -1)
}

// ACL is a right of an identity to a node.
type ACL struct {
	Perms      int32
	Scheme, ID string
}

// The rights that locks need.
const (
	PermRead = 1
	PermAll  = 31
)

// str returns a string as the protocol has it, with room for a little more.
func str(s string) []byte { return appendBytes(make([]byte, 0, len(s)+8), s) }

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(appendInt(b, int32(len(s))), s...)
}

func appendInt(b []byte, n int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }

func appendLong(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }
