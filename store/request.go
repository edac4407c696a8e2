package store

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Limits that are the same for every store.
const (
	MaxName  = 1024             // bytes of Lease.Name
	MaxOwner = 256              // bytes of Lease.Owner
	MaxMeta  = 4096             // bytes of Lease.Meta
	MinTTL   = time.Millisecond // shortest Lease.TTL; see also Caps.MinTTL
	MaxQueue = 100              // waiters in State.Queue
)

// ownerBytes is the number of random bytes in an owner.
const ownerBytes = 20

// NewOwner returns a fresh owner value: 20 random bytes in base64url, as the
// Redlock specification asks for. Every attempt to acquire needs a new one. If
// two attempts share an owner, late clean-up of the first can end the lease of
// the second and so break mutual exclusion (see also Lease.Attempt).
func NewOwner() string {
	var b [ownerBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// IsNewOwner reports whether owner has the form of a value that NewOwner or
// NewOwnerAt returns.
func IsNewOwner(owner string) bool {
	random, _, _ := strings.Cut(owner, string(rankMark))
	b, err := base64.RawURLEncoding.DecodeString(random)
	return err == nil && len(b) == ownerBytes
}

// Lease describes one lease of one lock: who wants or holds it, and for how
// long. Renew takes it as it is; every other request begins with it. The lease
// that was granted is Grant.Lease, which is also the one to renew and to release.
type Lease struct {
	// Name is the name of the lock: 1 to MaxName bytes, of any value. See
	// CheckName for reserved names.
	Name string
	// Owner identifies one attempt to acquire: 1 to MaxOwner printable ASCII
	// characters without space. See NewOwner.
	Owner string
	// Attempt tells several attempts of the same Owner apart. It is empty if
	// Owner is new, and otherwise a new value for each attempt, in the form of an
	// Owner. Clean-up after one attempt leaves the grants of the others alone.
	Attempt string
	// Kind is the kind of the lock. The zero value is a mutex. A store that keeps no
	// other kinds returns ErrUnsupported for them.
	Kind Kind
	// Weight is how much of Kind.Limit the owner wants. Zero means 1.
	Weight int64
	// Slots are the numbers of the permits that the lease has, in ascending order, if it is one of
	// a semaphore over several nodes, where each permit is a lock of its own. A renewal needs them.
	// Requests to acquire do not look at them.
	Slots []int64
	// Repeated reports that the request to acquire the lease was sent more than once, and that one
	// may still be in flight. A release needs it; see ReleaseRequest.Renewed.
	Repeated bool
	// Meta describes the owner to people; see Holder.Encode. Stores keep it and
	// return it without interpreting it.
	Meta string
	// TTL is how long the store keeps the lease if nobody renews it, within
	// Caps.MinTTL and Caps.MaxTTL. Stores may round it up to Caps.Resolution,
	// never down. Renewals may ask for another TTL than the acquire.
	TTL time.Duration
	// Require is the weakest class of guarantee that the caller accepts. A store
	// that cannot give it returns ErrUnsupported; a store that can give it only
	// at a higher cost does so.
	Require Class
}

// AcquireRequest is the request of Store.Acquire.
type AcquireRequest struct {
	Lease
}

// WaitRequest is the request of Store.Wait.
type WaitRequest struct {
	Lease
}

// ReleaseRequest is the request of Store.Release.
type ReleaseRequest struct {
	Lease
	// Renewed says that the lease was renewed before, or that a renewal is under
	// way. Over several nodes, a late renewal could otherwise give the lease back
	// to a node that had lost it. A Store sets it for a lease that is Repeated.
	Renewed bool
	// Undo takes back one attempt: the lease stays as it is if another attempt of
	// the same Owner was granted it, or joined it. Stores may ignore Undo if Attempt
	// is empty.
	Undo bool
}

// Grant is the result of a successful Acquire or Wait.
type Grant struct {
	// Lease is the lease to renew and to release. It is that of the request, with other Slots and
	// Repeated, and with another Owner of the same rank if Wait had to replace it. An engine may
	// leave Lease zero if it is that of the request: the Store sets it then.
	Lease Lease
	// Token is larger than the token of every earlier grant of the same lock.
	Token fence.Token
	// Slot is a number that no other holder of the lock has, from 0 to
	// Kind.Limit - 1. The lease keeps it while it lasts. For a mutex it is 0, and over
	// several nodes also for a read-write lock. It is the smallest of Lease.Slots, if there are some.
	Slot int64
	// Since is when the granted request was sent, as the time since just before
	// the call. Validity counts from then. It is zero for Acquire, which sends its
	// request once.
	Since time.Duration
}

// Check returns nil if l is valid for a store of those capabilities. Otherwise the
// error matches ErrInvalid, or ErrUnsupported if the store cannot keep locks of
// that kind. A Store checks each request before its engine sees it.
func (l Lease) Check(c Caps) error {
	if err := l.CheckTerms(c); err != nil {
		return err
	}
	if err := CheckOwner(l.Owner); err != nil {
		return err
	}
	if l.Attempt != "" {
		if err := CheckOwner(l.Attempt); err != nil {
			return err
		}
	}
	if len(l.Meta) > MaxMeta {
		return fmt.Errorf("%w: the description of the holder has %d bytes, the maximum is %d: shorten the purpose", ErrInvalid, len(l.Meta), MaxMeta)
	}
	return nil
}

// CheckTerms is Check for a lease that has no owner yet: it reads the name, the kind, the weight and
// the TTL.
func (l Lease) CheckTerms(c Caps) error {
	if err := CheckName(l.Name); err != nil {
		return err
	}
	if err := l.CheckKind(c); err != nil {
		return err
	}
	return c.CheckTTL(l.TTL)
}

// CheckClass returns nil if a store of those capabilities can give what l requires, and
// otherwise an error that matches ErrUnsupported.
func (l Lease) CheckClass(c Caps) error {
	if l.Require > c.Class {
		return fmt.Errorf("%w: lock %q requires %v, and this store (%s) gives %v at most", ErrUnsupported, excerpt.AtMost(l.Name, mostQuoted), l.Require, c.Engine, c.Class)
	}
	return nil
}

// CheckName returns nil if name can name a lock, and otherwise an error that
// matches ErrInvalid. The client, the command and all stores use it, so that a
// program can change its store without renaming locks.
//
// Names of keys that Leasehold itself uses in Redis are reserved in every store.
// They begin with "leasehold:", or have the form {x}:word, where x is any text
// and word is token, line, waits, fence, made or broken, or begins with gone: or
// place:.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the lock's name is empty: give it one", ErrInvalid)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: the lock's name has %d bytes, the maximum is %d: shorten or hash it", ErrInvalid, len(name), MaxName)
	}
	if reserved(name) {
		return fmt.Errorf("%w: the name %q is reserved for Leasehold's own keys: choose another name", ErrInvalid, excerpt.AtMost(name, mostQuoted))
	}
	return nil
}

// CheckOwner returns nil if owner is 1 to MaxOwner printable ASCII characters
// without space, and otherwise an error that matches ErrInvalid.
func CheckOwner(owner string) error {
	if owner == "" || len(owner) > MaxOwner {
		return fmt.Errorf("%w: the owner has %d bytes: it must have 1 to %d", ErrInvalid, len(owner), MaxOwner)
	}
	for i := range len(owner) {
		if owner[i] <= ' ' || owner[i] > '~' {
			return fmt.Errorf("%w: the owner %q has a space or a character that is not printable ASCII", ErrInvalid, owner)
		}
	}
	return nil
}
