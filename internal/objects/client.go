package objects

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Client makes the requests of a driver that speaks HTTP itself. It repeats none.
type Client struct {
	HTTP *http.Client
	// Timeout bounds each request.
	Timeout time.Duration
	// Say completes a failure by the body of the answer.
	Say func(f *Failure, body []byte)
	// Untrusted returns what to say about a server whose certificate is not trusted. Nil means to name
	// it in SSL_CERT_FILE.
	Untrusted func(err error) error
	// Slow reports whether an answer asks for fewer requests of any kind.
	Slow func(status int) bool
	pace Pacer
}

// Failure is an answer that says that a request was not carried out.
type Failure struct {
	Res  *http.Response // its body was read
	Code string         // such as BlobNotFound
	Text string
}

func (f *Failure) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s: %s", f.Res.StatusCode, store.Excerpt(f.Code), store.Excerpt(f.Text)))
}

// maxAnswer is how long an answer can be: a record with thousands of waiters.
const maxAnswer = 16 << 20

// Do makes a request. It returns a Failure for an answer that is none of success.
func (c *Client) Do(ctx context.Context, method, to string, header http.Header, body []byte) ([]byte, *http.Response, error) {
	if err := c.pace.Wait(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if header != nil {
		req.Header = header
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) { // the URL is long
			err = u.Err
		}
		if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
			if c.Untrusted != nil {
				return nil, nil, c.Untrusted(err)
			}
			err = recordstore.Refusal("%w: trust its certificate in the file that SSL_CERT_FILE names", err)
		}
		return nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode < 300 {
		c.pace.Heard(res)
		return answer, res, nil
	}
	f := &Failure{Res: res, Text: string(answer)}
	c.Say(f, answer)
	if c.Slow(res.StatusCode) {
		c.pace.Heard(res)
	}
	return nil, nil, f
}

// Explain returns err as recordstore understands it. conflict reports whether a failure says that
// an object has another version.
func Explain(err error, conflict func(f *Failure) bool) error {
	f := (*Failure)(nil)
	if !errors.As(err, &f) {
		return err
	}
	switch s := f.Res.StatusCode; {
	case conflict(f):
		return fmt.Errorf("%w: %w", recordstore.ErrConflict, err)
	case s == http.StatusRequestTimeout, s == http.StatusTooManyRequests:
	case s == http.StatusNotImplemented, s >= 300 && s < 500:
		return recordstore.Refusal("%w", err)
	}
	return err
}

// Dates sets the times of an item by an answer, whose dates have no fractions of a second and whose
// server's clock may jump by skew. If skew is zero, no dates are used.
func Dates(it *recordstore.Item, res *http.Response, skew time.Duration) {
	now, err := time.Parse(time.RFC1123, res.Header.Get("Date"))
	written, err2 := time.Parse(time.RFC1123, res.Header.Get("Last-Modified"))
	if skew > 0 && err == nil && err2 == nil {
		it.Now, it.Written = now, written.Add(skew+time.Second)
	}
}
