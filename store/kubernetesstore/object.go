package kubernetesstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// object is a Lease as the API server sends it: its metadata, its spec, and what else it has.
type object struct{ meta, spec, rest message }

// The numbers of the fields of a Lease, of its metadata and its spec, and of what these have.
const (
	metaOf, specOf = 1, 2

	nameOf, uidOf, versionOf, labelsOf, annotationsOf, managedOf = 1, 5, 6, 11, 12, 17

	holderOf, secondsOf, acquiredOf, renewedOf, transitionsOf = 1, 2, 3, 4, 5

	managerOf, noticedOf = 1, 4 // in an entry of managedFields
)

// decode returns a Lease that is encoded, with or without an envelope. Changes of the object change b.
func decode(b message) (o object, err error) {
	for left := unwrap(b); len(left) > 0; {
		f, after, err := left.cut()
		if err != nil {
			return o, err
		}
		switch f.number {
		case metaOf:
			o.meta = f.text
		case specOf:
			o.spec = f.text
		default:
			o.rest = append(o.rest, left[:len(left)-len(after)]...)
		}
		left = after
	}
	every := func(field) bool { return true }
	return o, errors.Join(o.meta.fields(every), o.spec.fields(every))
}

// encode returns the object as one message.
func (o *object) encode() message {
	b := make(message, 0, len(o.meta)+len(o.spec)+len(o.rest)+4*binary.MaxVarintLen32)
	b.add(metaOf, o.meta)
	b.add(specOf, o.spec)
	return append(b, o.rest...)
}

const (
	// recordKey is the annotation with the record, in base64, and the mark of the spec that was written with
	// it. It is also the label of objects that have one, with recordForm as its value.
	recordKey  = "leasehold-dev.github.io/record"
	recordForm = "v1"
	apiVersion = "coordination.k8s.io/v1"
	// manager is what the API server calls the programs that write records, since their User-Agent begins
	// with it and a slash.
	manager = "leasehold"
)

// mark tells specs apart. One that has not the mark in the annotation was written by another kind of
// client.
func (o *object) mark() string {
	return strconv.FormatInt(o.spec.time(renewedOf).UnixMicro(), 10) + " " + o.spec.text(holderOf)
}

// absent is the version of an object that does not exist.
const absent = ""

// version returns what the next write of the object sends back. It removes the rest, such as the record,
// which that write replaces, and managedFields, which say which programs have changed which fields when. The
// API server keeps what a write leaves out of them, and adds to it, which costs it as much as the rest of the
// write. If they are one empty entry, it notes nothing until another program asks it to.
func (o *object) version() (string, error) {
	if o.meta.text(uidOf) == "" || o.meta.text(versionOf) == "" {
		return "", errors.New("the server sends an object without uid or resourceVersion")
	}
	o.meta.deleteEntry(annotationsOf, recordKey)
	alone := true
	_ = o.meta.fields(func(f field) bool {
		alone = alone && (f.number != managedOf || f.text.text(managerOf) == manager)
		return true
	})
	if o.meta.delete(managedOf); alone {
		o.meta.add(managedOf, nil)
	}
	return string(o.encode()), nil
}

// noted returns an entry of managedFields from which on the API server notes when the object is written.
func noted() message {
	var m, fields message
	for i, s := range map[int]string{managerOf: manager, 2: "Update", 3: apiVersion, 6: "FieldsV1"} {
		m.add(i, []byte(s))
	}
	fields.add(1, []byte(`{"f:spec":{}}`))
	m.add(7, fields)
	return m
}

// revision returns a resourceVersion as a number: the revision of etcd, which rises with each write of
// any object.
func revision(resource string) (uint64, error) {
	n, err := strconv.ParseUint(resource, 10, 64)
	if err != nil || n == 0 || n > recordstore.MaxFloor {
		return 0, recordstore.Refusal("the server sends the resourceVersion %q, and tokens need a number below 2^42", resource)
	}
	return n, nil
}

// item returns the object as recordstore reads it. The date is that of the answer, and skew how far apart
// the clocks of servers can be; if it is zero, no dates are used. Nothing else may read the object later.
func (o *object) item(date string, skew time.Duration) (it recordstore.Item, err error) {
	if it.Order, err = revision(o.meta.text(versionOf)); err != nil {
		return it, err
	}
	note, ok := o.meta.entry(annotationsOf, recordKey)
	record, marked, _ := strings.Cut(note, " ")
	if !ok {
		it.Floor = it.Order
	} else if it.Value, err = base64.StdEncoding.DecodeString(record); err != nil || len(it.Value) == 0 {
		return it, recordstore.Refusal("the annotation %s of the Lease %s is no record", recordKey, o.meta.text(nameOf))
	}
	if mark := o.mark(); marked != mark {
		sum := sha256.Sum256([]byte(mark))
		it.Other = &recordstore.Other{Owner: o.spec.text(holderOf), TTL: time.Duration(o.spec.number(secondsOf)) * time.Second, Beat: binary.BigEndian.Uint64(sum[:8])}
	} else if now, err := time.Parse(time.RFC1123, date); err == nil && skew > 0 && !o.written().IsZero() {
		it.Now, it.Written = now, o.written().Add(skew+time.Second) // both have no fractions of a second
	}
	it.Version, err = o.version()
	return it, err
}

// written returns when the record was written, by the clock of the server that wrote it, or the zero time.
func (o *object) written() (at time.Time) {
	_ = o.meta.fields(func(f field) bool {
		if f.number == managedOf && f.text.text(managerOf) == manager {
			if t := f.text.time(noticedOf); t.After(at) {
				at = t
			}
		}
		return true
	})
	return at
}

// broken is the holder in the spec of a lock whose lease was broken before anybody else has seen it.
const broken = "broken lease"

// holdBy sets the spec as a write changes the lock, if it changes something for other kinds of
// clients.
func (o *object) holdBy(c recordstore.Change) {
	now := time.Now()
	before, exists := o.spec.text(holderOf), o.meta.text(versionOf) != ""
	holder, seconds := c.Holder, int64(1) // as client-go writes it for nobody
	switch {
	case c.Other:
		return
	case c.TTL > 0:
		if holder == "" { // its lease is broken, and lasts
			holder = cmp.Or(before, broken)
		}
		seconds = duration(c.TTL)
	}
	if holder == before && !c.Renewed && exists {
		return
	}
	o.spec.set(holderOf, []byte(holder))
	o.spec.setNumber(secondsOf, seconds)
	o.spec.setTime(renewedOf, now)
	if holder != before || !exists {
		transitions := o.spec.number(transitionsOf)
		if holder != "" && exists {
			transitions = min(transitions+1, math.MaxInt32)
		}
		o.spec.setTime(acquiredOf, now)
		o.spec.setNumber(transitionsOf, transitions)
	}
}

// duration returns a TTL in seconds, rounded up. One more is added, since leader election does not
// see a renewal in the same second as the one before.
func duration(ttl time.Duration) int64 {
	return int64(min((ttl+time.Second-1)/time.Second, math.MaxInt32-1) + 1)
}

var (
	// nameForm is that of the names of objects, of which the longest has maxName bytes.
	nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	// hashedForm is that of the names which keyOf makes.
	hashedForm = regexp.MustCompile(`\.[0-9a-f]{32}$`)
	odd        = regexp.MustCompile(`[^a-z0-9]+`)
)

const maxName = 253

// probeKey is the name of an object that is no lock: nobody knows a text with this hash.
const probeKey = "leasehold-probe.00000000000000000000000000000000"

// keyOf returns the name of the object of a lock: the lock's, if objects can have it, and otherwise what
// resembles it, and a hash.
func keyOf(name string) string {
	if len(name) <= maxName && nameForm.MatchString(name) && !hashedForm.MatchString(name) {
		return name
	}
	like := odd.ReplaceAllString(strings.ToLower(name), "-")
	like = strings.Trim(like[:min(len(like), 100)], "-")
	if like == "" {
		like = "lock"
	}
	h := sha256.Sum256([]byte(name))
	return like + "." + hex.EncodeToString(h[:16])
}

// ObjectName returns the name of the Lease object of a lock.
func ObjectName(lock string) string { return keyOf(lock) }
