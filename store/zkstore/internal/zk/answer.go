package zk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Answer is the answer to a Request.
type Answer struct {
	// Err is the error that the server gave, or ErrLost.
	Err  error
	body []byte
	// zxid is that of the last transaction that the server had applied. For a write it is
	// the write's own: servers apply one at a time, and answer it before the next one.
	zxid int64
}

// Node is what a node says: its data, its version, and the zxid of the transaction that
// made it.
type Node struct {
	Data    []byte
	Version int32
	Czxid   int64
	// Changed is when its data were changed, by the clock of the leader at that time.
	Changed time.Time
}

// errStrange means that an answer is not what the protocol has, so that the outcome of the
// request is unknown.
var errStrange = errors.New("the server sent an answer that ZooKeeper's protocol does not have")

// statSize is the length of what an answer says of a node, without its data.
const statSize = 68

// dataLengthAt is the offset of the length of the data in a Stat.
const dataLengthAt = 52

// Names returns the answer to a List: the names of the children, none if there is no such node, and
// whether the node has data.
func (a Answer) Names() (names []string, data bool, err error) {
	switch {
	case errors.Is(a.Err, ErrNoNode):
		return nil, false, nil
	case a.Err != nil:
		return nil, false, a.Err
	}
	f := fields{rest: a.body}
	n := f.int()
	if n < 0 || int(n) > len(f.rest)/4 {
		return nil, false, errStrange
	}
	names = make([]string, n)
	for i := range names {
		names[i] = string(f.bytes())
	}
	f.take(dataLengthAt)
	return names, f.int() > 0, f.err()
}

// Node returns the answer to a Read; ok is false if there is no such node.
func (a Answer) Node() (n Node, ok bool, err error) {
	switch {
	case errors.Is(a.Err, ErrNoNode):
		return n, false, nil
	case a.Err != nil:
		return n, false, a.Err
	}
	f := fields{rest: a.body}
	n.Data = f.bytes()
	n.Czxid = f.long()
	f.take(8) // the zxid of the last change
	_, n.Changed = f.long(), time.UnixMilli(f.long())
	n.Version = f.int()
	return n, f.err() == nil, f.err()
}

// Created returns the path and the zxid of the node that a Create has made.
func (a Answer) Created() (path string, czxid int64, err error) {
	if a.Err != nil {
		return "", 0, a.Err
	}
	f := fields{rest: a.body}
	path, czxid = string(f.bytes()), a.zxid
	if len(f.rest) > 0 { // a Multi does not say more
		czxid = f.long()
	}
	return path, czxid, f.err()
}

// ACL returns the answer to a GetACL.
func (a Answer) ACL() (acl []ACL, err error) {
	if a.Err != nil {
		return nil, a.Err
	}
	f := fields{rest: a.body}
	for n := f.int(); n > 0 && !f.short; n-- {
		acl = append(acl, ACL{f.int(), string(f.bytes()), string(f.bytes())})
	}
	return acl, f.err()
}

// Each returns the answers to the n parts of a Multi. If a part has failed, nothing was
// done: the error is of that part, and the answers to the others have none.
func (a Answer) Each(n int) (all []Answer, err error) {
	if a.Err != nil {
		return nil, a.Err
	}
	for f := (fields{rest: a.body}); ; {
		op, done := f.int(), f.take(1)[0] != 0
		f.int()
		if f.short || done && len(all) != n {
			return nil, errStrange
		}
		if done {
			return all, err
		}
		start, failed := f.rest, error(nil)
		switch op {
		case -1:
			if failed = errorOf(f.int()); errors.Is(failed, errOfAnother) {
				failed = nil
			}
		case opCreate:
			f.bytes()
		case opCreate2: // not of ZooKeeper 3.8, which answers it as opCreate
			f.bytes()
			f.take(statSize)
		case opSetData:
			f.take(statSize)
		case opDelete, opCheck:
		default:
			return nil, errStrange
		}
		all, err = append(all, Answer{Err: failed, body: start[:len(start)-len(f.rest)], zxid: a.zxid}), cmp.Or(err, failed)
	}
}

// fields reads an answer.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) err() error {
	if f.short {
		return errStrange
	}
	return nil
}

// take returns the next n bytes, or zeros if there are fewer.
func (f *fields) take(n int) []byte {
	if n < 0 || n > len(f.rest) {
		f.rest, f.short = nil, true
		return make([]byte, 8)
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) int() int32  { return int32(binary.BigEndian.Uint32(f.take(4))) }
func (f *fields) long() int64 { return int64(binary.BigEndian.Uint64(f.take(8))) }

// bytes returns a string of bytes, of which the length comes first. It is -1 for none.
func (f *fields) bytes() []byte {
	n := f.int()
	if n < 0 || int(n) > len(f.rest) {
		f.short = f.short || n != -1
		return nil
	}
	return f.take(int(n))
}

// Errors of requests.
var (
	// ErrLost means that the connection broke, or the server refused to go on with it, before the
	// answer: the request may or may not have been executed.
	ErrLost       = errors.New("the connection to the server was lost before its answer")
	ErrNoNode     = errors.New("there is no such node")
	ErrNoAuth     = errors.New("this identity has no right to do that")
	ErrBadVersion = errors.New("the node has another version")
	ErrNodeExists = errors.New("the node is there already")
	ErrNotEmpty   = errors.New("the node has children")
	ErrInvalidACL = errors.New("the ACL is invalid")
	ErrAuthFailed = errors.New("the identity is not accepted")

	// errOfAnother is that of a part of a transaction of which another part has failed.
	errOfAnother = errors.New("another part of the transaction has failed")
)

// errorsOf has the errors that locks can meet, by their codes.
var errorsOf = map[int32]error{
	0:    nil,
	-2:   errOfAnother,
	-4:   ErrLost,
	-101: ErrNoNode,
	-102: ErrNoAuth,
	-103: ErrBadVersion,
	-110: ErrNodeExists,
	-111: ErrNotEmpty,
	-112: ErrOver,
	-114: ErrInvalidACL,
	-115: ErrAuthFailed,
	-118: ErrLost, // the session has moved to another connection
}

func errorOf(code int32) error {
	if err, ok := errorsOf[code]; ok {
		return err
	}
	return fmt.Errorf("ZooKeeper's error %d", code)
}
