package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/internal/httpapi"
)

// Limits of a body.
const (
	maxBody  = 64 << 10 // of a call about one lock
	maxBatch = 4 << 20  // of the calls about many
	// mostAhead is how much room is made before anything has arrived.
	mostAhead = 8 << 10
)

// read decodes the body of r into v. An empty body leaves v as it is.
func (s *Server) read(w http.ResponseWriter, r *http.Request, v any, most int64) error {
	var body bytes.Buffer
	err := s.body(w, r, most, &body)
	b := body.Bytes()
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return err
	}
	if q, ok := v.(*httpapi.Request); ok && q.ReadPlain(b) {
		return nil
	}
	// Package encoding/json needs much stack, which this goroutine would keep during a wait.
	wrong := make(chan error)
	go func() { wrong <- decode(b, v) }()
	return <-wrong
}

// body reads the body of r into b. Nothing is read beyond most bytes, or for longer than the server's
// patience.
func (s *Server) body(w http.ResponseWriter, r *http.Request, most int64, b *bytes.Buffer) error {
	if r.ContentLength == 0 {
		return nil
	}
	if r.ContentLength > most {
		return tooLarge(most)
	}
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(s.Patience)) // fails only in tests without a connection
	b.Grow(int(max(0, min(r.ContentLength, mostAhead))) + bytes.MinRead)
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		c.SetReadDeadline(time.Time{})
		return nil
	}
	b.Reset()
	w.Header().Set("Connection", "close") // the rest is not waited for, nor taken for the next request
	if errors.As(err, new(*http.MaxBytesError)) {
		return tooLarge(most)
	}
	return invalid("the body did not arrive: " + err.Error())
}

func decode(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return invalid("the body is not the JSON that this call takes: " + err.Error())
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("the body has more than one JSON value")
	}
	return nil
}

func tooLarge(most int64) error {
	return refuse(httpapi.TooLarge, fmt.Sprintf("the body has more than %d bytes", most))
}
