package session

import (
	"encoding/binary"

	"github.com/go-zookeeper/zk"
)

// Request is a request that a session sends by itself, without the library: one of those
// that locks are made of, and what waits for them. What is rare goes through the library.
type Request struct {
	op   int32
	body []byte
	// watch is the one that the request sets, or nil.
	watch *Watch
}

// List asks for the names of a node's children, and whether it has data.
func List(path string) Request {
	return Request{op: opGetChildren2, body: append(str(path), 0)} // no watch
}

// Read asks for what a node says.
func Read(path string) Request {
	return Request{op: opGetData, body: append(str(path), 0)} // no watch
}

// Sync asks the server to catch up with the leader before it answers.
func Sync(path string) Request { return Request{op: opSync, body: str(path)} }

// Delete deletes a node, whatever its version.
func Delete(path string) Request {
	return Request{op: opDelete, body: binary.BigEndian.AppendUint32(str(path), anyVersion)}
}

// Check does nothing, and fails if there is no such node. It is part of a Multi.
func Check(path string) Request { return CheckVersion(path, -1) }

// CheckVersion is Check for a node with data of that version; -1 stands for any.
func CheckVersion(path string, version int32) Request {
	return Request{op: opCheck, body: binary.BigEndian.AppendUint32(str(path), uint32(version))}
}

// Create makes an ephemeral sequential node. The answer has its zxid.
func Create(path string, data []byte, acl []zk.ACL) Request {
	b := make([]byte, 0, 64+len(path)+len(data))
	b = appendBytes(b, path)
	b = appendBytes(b, data)
	b = binary.BigEndian.AppendUint32(b, uint32(len(acl)))
	for _, a := range acl {
		b = binary.BigEndian.AppendUint32(b, uint32(a.Perms))
		b = appendBytes(b, a.Scheme)
		b = appendBytes(b, a.ID)
	}
	return Request{op: opCreate2, body: binary.BigEndian.AppendUint32(b, zk.FlagEphemeralSequential)}
}

// Multi is one transaction of Check, Delete and Create. All of them are done, or none.
func Multi(of ...Request) Request {
	var b []byte
	for _, r := range of {
		b = append(multiHeader(b, r.op, false), r.body...)
	}
	return Request{op: opMulti, body: multiHeader(b, -1, true)}
}

func multiHeader(b []byte, op int32, done bool) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	last := byte(0)
	if done {
		last = 1
	}
	return binary.BigEndian.AppendUint32(append(b, last), ^uint32(0))
}

// anyVersion is the version -1.
const anyVersion = ^uint32(0)

// str returns a string as the protocol has it, with room for a little more.
func str(s string) []byte { return appendBytes(make([]byte, 0, len(s)+8), s) }

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
