package kubernetesstore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// object is a Lease as the API server sends it. What locks do not know of stays as others have written it.
type object map[string]any

// decode reads JSON, with numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// at returns what is in o under a path. It makes what is missing, unless o is nil.
func (o object) at(path ...string) object {
	for _, name := range path {
		in, ok := o[name].(map[string]any)
		if !ok && o != nil {
			in = map[string]any{}
			o[name] = in
		}
		o = in
	}
	return o
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

func (o object) number(name string) int64 {
	n, _ := o[name].(json.Number)
	i, _ := n.Int64()
	return i
}

// time returns a time, and the zero one if there is none.
func (o object) time(name string) time.Time {
	t, _ := time.Parse(time.RFC3339, o.text(name))
	return t
}

// timeForm is the form of times in the spec that the API server demands.
const timeForm = "2006-01-02T15:04:05.000000Z"

const (
	// recordKey is the annotation with the record, in base64, and the label of objects that have
	// one, with recordForm as its value.
	recordKey  = "leasehold-dev.github.io/record"
	recordForm = "v1"
	// holderKey is the annotation that says what the spec is if no other kind of client has changed it.
	holderKey  = "leasehold-dev.github.io/holder"
	apiVersion = "coordination.k8s.io/v1"
	// manager is what the API server calls the programs that write records.
	manager = "leasehold"
)

// mark returns the value for holderKey.
func (o object) mark() string {
	return fmt.Sprint(o.at("spec").time("renewTime").UnixMicro(), " ", o.at("spec").text("holderIdentity"))
}

// absent is the version of an object that does not exist.
const absent = "{}"

// version returns what the next write of the object sends back. It removes the rest, such as the record,
// which that write replaces.
func (o object) version() (string, error) {
	meta := o.at("metadata")
	if meta.text("uid") == "" || meta.text("resourceVersion") == "" {
		return "", errors.New("the server sends an object without uid or resourceVersion")
	}
	delete(o, "apiVersion") // lists have none
	delete(o, "kind")
	delete(meta.at("annotations"), recordKey)
	managed := o.managed()
	if delete(meta, "managedFields"); !slices.ContainsFunc(managed, func(m object) bool { return m.text("manager") != manager }) {
		meta["managedFields"] = []any{}
	}
	text, err := json.Marshal(o)
	return string(text), err
}

// managed returns which programs have changed which fields when. The API server keeps what a write leaves
// out, and adds to it, which costs it as much as the rest of the write. If a write sends an empty list, the
// API server notes nothing until another program asks it to.
func (o object) managed() (all []object) {
	list, _ := o.at("metadata")["managedFields"].([]any)
	for _, m := range list {
		m, _ := m.(map[string]any)
		all = append(all, m)
	}
	return all
}

// noted is a list from which on the API server notes when the object is written.
var noted = []any{object{"manager": manager, "operation": "Update", "apiVersion": apiVersion, "fieldsType": "FieldsV1", "fieldsV1": object{"f:spec": object{}}}}

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
func (o object) item(date string, skew time.Duration) (it recordstore.Item, err error) {
	meta, spec := o.at("metadata"), o.at("spec")
	if it.Order, err = revision(meta.text("resourceVersion")); err != nil {
		return it, err
	}
	notes := meta.at("annotations")
	record, ok := notes[recordKey].(string)
	if !ok {
		it.Floor = it.Order
	} else if it.Value, err = base64.StdEncoding.DecodeString(record); err != nil || len(it.Value) == 0 {
		return it, recordstore.Refusal("the annotation %s of the Lease %s is no record", recordKey, meta.text("name"))
	}
	if mark := o.mark(); !ok || notes.text(holderKey) != mark {
		sum := sha256.Sum256([]byte(mark))
		beat, _ := strconv.ParseUint(hex.EncodeToString(sum[:8]), 16, 64)
		it.Other = &recordstore.Other{Owner: spec.text("holderIdentity"), TTL: time.Duration(spec.number("leaseDurationSeconds")) * time.Second, Beat: beat}
	} else if now, err := time.Parse(time.RFC1123, date); err == nil && skew > 0 && !o.written().IsZero() {
		it.Now, it.Written = now, o.written().Add(skew+time.Second) // both have no fractions of a second
	}
	it.Version, err = o.version()
	return it, err
}

// written returns when the record was written, by the clock of the server that wrote it, or the zero time.
func (o object) written() (at time.Time) {
	for _, m := range o.managed() {
		if t := m.time("time"); m.text("manager") == manager && t.After(at) {
			at = t
		}
	}
	return at
}

// broken is the holder in the spec of a lock whose lease was broken before anybody else has seen it.
const broken = "broken lease"

// holdBy updates the spec for a write that changes the lock. Other kinds of clients read the spec, so
// it stays as it is if nothing has changed for them.
func (o object) holdBy(c recordstore.Change) {
	spec, now := o.at("spec"), time.Now().UTC().Format(timeForm)
	before, exists := spec.text("holderIdentity"), o.at("metadata").text("resourceVersion") != ""
	holder, seconds := c.Holder, int32(1) // as client-go writes it for nobody
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
	spec["holderIdentity"], spec["leaseDurationSeconds"], spec["renewTime"] = holder, seconds, now
	if holder != before || !exists {
		transitions := spec.number("leaseTransitions")
		if holder != "" && exists {
			transitions = min(transitions+1, math.MaxInt32)
		}
		spec["acquireTime"], spec["leaseTransitions"] = now, transitions
	}
	o.at("metadata", "annotations")[holderKey] = o.mark()
}

// duration returns a TTL in seconds, rounded up. One more is added, since leader election does not
// see a renewal in the same second as the one before.
func duration(ttl time.Duration) int32 {
	return int32(min((ttl+time.Second-1)/time.Second, math.MaxInt32-1) + 1)
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
