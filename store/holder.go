package store

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Holder describes who has a lock, or waits for it, to people. Only Owner takes
// part in decisions.
type Holder struct {
	Owner string
	// Foreign says that another kind of client made the lock. Owner is then what it
	// wrote into the lock's key, as far as that can be shown, and the rest is empty.
	Foreign bool
	Host    string
	PID     int
	Purpose string
	// Spare is how many tokens the holder reserved with its grant; see Request.Spare.
	Spare int
	// Since is when the attempt that got the lock began, by the holder's wall
	// clock, to the second.
	Since time.Time
}

type holderJSON struct {
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Purpose string `json:"purpose,omitempty"`
	Since   int64  `json:"since,omitempty"` // Unix seconds
	Spare   int    `json:"spare,omitempty"`
}

// Encode returns h without its Owner as compact JSON, for Request.Meta.
func (h Holder) Encode() string {
	j := holderJSON{Host: h.Host, PID: h.PID, Purpose: strings.ToValidUTF8(h.Purpose, "?"), Spare: h.Spare}
	if !h.Since.IsZero() {
		j.Since = h.Since.Unix()
	}
	b, err := json.Marshal(j)
	if err != nil {
		panic("leasehold: encoding strings and numbers failed: " + err.Error())
	}
	return string(b)
}

// lastSince is a day before the year 10000, which RFC 3339, and so JSON, can not
// write in any time zone.
const lastSince = 253402214400

// DecodeHolder is the inverse of Encode, with the owner it was stored beside.
// It takes any bytes: what is not ours gives a Holder with only its Owner.
func DecodeHolder(owner, meta string) Holder {
	h := Holder{Owner: owner}
	var j holderJSON
	if json.Unmarshal([]byte(meta), &j) != nil {
		return h
	}
	h.Host, h.PID, h.Purpose, h.Spare = j.Host, j.PID, j.Purpose, j.Spare
	if 0 < j.Since && j.Since < lastSince {
		h.Since = time.Unix(j.Since, 0)
	}
	return h
}

// String names the holder in one short line that is safe on a terminal,
// whatever bytes a stranger wrote into the lock.
func (h Holder) String() string {
	var b strings.Builder
	if h.Host == "" && h.PID == 0 {
		b.WriteString(printable(h.Owner, mostShown))
	} else {
		b.WriteString(printable(h.Host, mostShown))
		b.WriteString(" pid ")
		b.WriteString(strconv.Itoa(h.PID))
	}
	if h.Purpose != "" {
		b.WriteString(" (")
		b.WriteString(printable(h.Purpose, mostShown))
		b.WriteString(")")
	}
	return b.String()
}
