package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Holder describes the holder of a lock, or a waiter, for people to read. Only
// Owner takes part in decisions; the other fields are what the holder said of
// itself and may be anything.
type Holder struct {
	// Owner is the owner value of the lease; see Lease.Owner.
	Owner string
	// Foreign reports that another kind of client made the lock. Owner is then
	// what that client wrote into the lock's key, as far as it can be shown, and
	// the fields below are empty.
	Foreign bool
	// Host and PID name the process that holds the lock.
	Host string
	PID  int
	// Purpose is the free text that the holder gave as its reason.
	Purpose string
	// Unrenewed reports that nobody renews the lease: its holder counts on the TTL, and need
	// not be running.
	Unrenewed bool
	// Broken reports that an operator broke the holder's lease; see Store.BreakLease.
	Broken bool
	// Waiting reports that it does not hold the lock, but waits for it ahead of a request
	// that was refused: see BusyError.
	Waiting bool
	// Since is when the holder's attempt to acquire began, by the holder's wall
	// clock, to the second. It is zero if unknown.
	Since time.Time
	// Trace is the trace in which the lock was asked for, as the traceparent of W3C Trace
	// Context: "00-", 32 hexadecimal digits of the trace, 16 of the span, and flags. It is
	// empty if the holder gave none. Encode and DecodeHolder drop any other text.
	Trace string
}

type holderJSON struct {
	Broken    bool   `json:"broken,omitempty"` // first: stores put it in
	Host      string `json:"host,omitempty"`
	PID       int    `json:"pid,omitempty"`
	Purpose   string `json:"purpose,omitempty"`
	Since     int64  `json:"since,omitempty"` // Unix seconds
	Trace     string `json:"trace,omitempty"`
	Unrenewed bool   `json:"unrenewed,omitempty"`
	Waiting   bool   `json:"waiting,omitempty"` // stores put it in
}

// Encode returns h as compact JSON for Lease.Meta. Owner and Foreign are left
// out, and invalid UTF-8 is replaced.
func (h Holder) Encode() string {
	j := holderJSON{Host: h.Host, PID: h.PID, Purpose: strings.ToValidUTF8(h.Purpose, "?"), Broken: h.Broken, Trace: traceOrNone(h.Trace), Waiting: h.Waiting, Unrenewed: h.Unrenewed}
	if !h.Since.IsZero() {
		j.Since = h.Since.Unix()
	}
	b, err := json.Marshal(j)
	if err != nil {
		panic("leasehold: encoding strings and numbers failed: " + err.Error())
	}
	return string(b)
}

// lastSince is a day before the year 10000, in Unix seconds. RFC 3339, and so
// JSON, cannot write the year 10000, in whatever time zone it begins.
const lastSince = 253402214400

// DecodeHolder returns the Holder that Encode wrote as meta, with the given
// owner. It accepts any bytes: if meta is not the output of Encode, only Owner
// is set.
func DecodeHolder(owner, meta string) Holder {
	h := Holder{Owner: owner}
	var j holderJSON
	if json.Unmarshal([]byte(meta), &j) != nil {
		return h
	}
	h.Host, h.PID, h.Purpose, h.Broken, h.Trace, h.Waiting, h.Unrenewed = j.Host, j.PID, j.Purpose, j.Broken, traceOrNone(j.Trace), j.Waiting, j.Unrenewed
	if 0 < j.Since && j.Since < lastSince {
		h.Since = time.Unix(j.Since, 0)
	}
	return h
}

// String names the holder in one short line. It is safe to print on a terminal,
// whatever bytes another client wrote into the lock.
func (h Holder) String() string {
	var b strings.Builder
	b.WriteString(h.Process(mostShown))
	if h.Purpose != "" {
		b.WriteString(" (")
		b.WriteString(excerpt.AtMost(h.Purpose, mostShown))
		b.WriteString(")")
	}
	return b.String()
}

// Process names the process of the holder: its host and its PID, as far as it gave them, or else
// its owner. It shows at most that many bytes of a text of the holder, and is as safe as String.
func (h Holder) Process(most int) string {
	switch {
	case h.PID != 0:
		return excerpt.AtMost(h.Host, most) + " pid " + strconv.Itoa(h.PID)
	case h.Host != "":
		return excerpt.AtMost(h.Host, most)
	}
	return excerpt.AtMost(h.Owner, most)
}
