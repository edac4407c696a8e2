package kubernetesstore

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// object is a Lease, as far as locks need it. What is not set is left out.
type object struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	ManagedFields   []managed         `json:"managedFields,omitempty"`
}

// managed says when a program has changed an object last.
type managed struct {
	Manager string    `json:"manager"`
	Time    time.Time `json:"time"`
}

type spec struct {
	HolderIdentity       *string    `json:"holderIdentity,omitempty"`
	LeaseDurationSeconds int32      `json:"leaseDurationSeconds,omitempty"`
	AcquireTime          *microTime `json:"acquireTime,omitempty"`
	RenewTime            *microTime `json:"renewTime,omitempty"`
	LeaseTransitions     *int32     `json:"leaseTransitions,omitempty"`
}

// microTime is a time in the form that the API server demands.
type microTime struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t microTime) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000000Z"`)), nil
}

const (
	// recordKey is the annotation with the record, in base64, and the label of objects that have
	// one, with recordForm as its value.
	recordKey  = "leasehold-dev.github.io/record"
	recordForm = "v1"
	// holderKey is the annotation that says what the spec is if no other kind of client has changed it.
	holderKey = "leasehold-dev.github.io/holder"
	// manager is what the API server calls the programs that write records.
	manager = "leasehold"
)

// holder returns the holder of the lock, according to the spec.
func (s *spec) holder() string {
	if s.HolderIdentity == nil {
		return ""
	}
	return *s.HolderIdentity
}

func (s *spec) transitions() int32 {
	if s.LeaseTransitions == nil {
		return 0
	}
	return *s.LeaseTransitions
}

// mark returns the value for holderKey.
func (s *spec) mark() string {
	renewed := int64(0)
	if s.RenewTime != nil {
		renewed = s.RenewTime.UnixMicro()
	}
	return fmt.Sprint(renewed, " ", s.holder())
}

// version is what the next write of an object needs to know of it. Of an object that does not exist it is
// zero.
type version struct {
	resource    string // resourceVersion
	transitions int32
	holder      string
}

func (v version) String() string { return fmt.Sprintf("%s %d %s", v.resource, v.transitions, v.holder) }

func parseVersion(s string) (v version, err error) {
	parts := strings.SplitN(s, " ", 3)
	if len(parts) != 3 {
		return v, recordstore.Refusal("version %q", s)
	}
	n, err := strconv.ParseInt(parts[1], 10, 32)
	return version{parts[0], int32(n), parts[2]}, err
}

func (o *object) version() version {
	return version{o.Metadata.ResourceVersion, o.Spec.transitions(), o.Spec.holder()}
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

// item returns the object as recordstore reads it.
func (o *object) item() (it recordstore.Item, err error) {
	it.Version = o.version().String()
	if it.Order, err = revision(o.Metadata.ResourceVersion); err != nil {
		return it, err
	}
	record, ok := o.Metadata.Annotations[recordKey]
	if !ok {
		it.Floor = it.Order
	} else if it.Value, err = base64.StdEncoding.DecodeString(record); err != nil || len(it.Value) == 0 {
		return it, recordstore.Refusal("the annotation %s of the Lease %s is no record", recordKey, o.Metadata.Name)
	}
	if mark := o.Spec.mark(); !ok || o.Metadata.Annotations[holderKey] != mark {
		sum := sha256.Sum256([]byte(mark))
		beat, _ := strconv.ParseUint(hex.EncodeToString(sum[:8]), 16, 64)
		it.Other = &recordstore.Other{Owner: o.Spec.holder(), TTL: time.Duration(o.Spec.LeaseDurationSeconds) * time.Second, Beat: beat}
	}
	return it, nil
}

// date sets the times of an item of o by an answer, whose dates have no fractions of a second and
// whose server's clock may be skew apart from that of the server which wrote the object.
func (o *object) date(it *recordstore.Item, res *http.Response, skew time.Duration) {
	now, err := time.Parse(time.RFC1123, res.Header.Get("Date"))
	if skew == 0 || err != nil || it.Other != nil {
		return
	}
	for _, m := range o.Metadata.ManagedFields {
		if written := m.Time.Add(skew + time.Second); m.Manager == manager && written.After(it.Written) {
			it.Now, it.Written = now, written
		}
	}
}

// broken is the holder in the spec of a lock whose lease was broken before anybody else has seen it.
const broken = "broken lease"

// holdBy sets the spec as a write changes the lock, or leaves it out if nothing changes for other
// kinds of clients.
func (o *object) holdBy(c recordstore.Change, v version) {
	now := microTime{time.Now()}
	holder, seconds := c.Holder, int32(1) // as client-go writes it for nobody
	switch {
	case c.Other:
		return
	case c.TTL > 0:
		if holder == "" { // its lease is broken, and lasts
			if holder = v.holder; holder == "" {
				holder = broken
			}
		}
		seconds = duration(c.TTL)
	}
	if holder == v.holder && !c.Renewed && v.resource != "" {
		return
	}
	o.Spec = spec{HolderIdentity: &holder, LeaseDurationSeconds: seconds, RenewTime: &now}
	if holder != v.holder || v.resource == "" {
		transitions := v.transitions
		if holder != "" && v.resource != "" {
			transitions++
		}
		o.Spec.AcquireTime, o.Spec.LeaseTransitions = &now, &transitions
	}
	o.Metadata.Annotations[holderKey] = o.Spec.mark()
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
