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
	// Conflict reports whether a failure says that an object has another version.
	Conflict func(f *Failure) bool
	// OfOne reports that the status 429 is about one object, and does not ask for fewer requests of
	// any kind.
	OfOne bool
	pace  Pacer
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

// Transport returns what makes requests for many goroutines at once.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// Do makes a request. Its error matches a Failure if the answer is none of success, and is one that
// recordstore understands.
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
	if !c.OfOne || res.StatusCode != http.StatusTooManyRequests {
		c.pace.Heard(res)
	}
	return nil, nil, c.explain(f)
}

// explain returns f as recordstore understands it.
func (c *Client) explain(f *Failure) error {
	switch s := f.Res.StatusCode; {
	case c.Conflict(f):
		return fmt.Errorf("%w: %w", recordstore.ErrConflict, f)
	case s == http.StatusRequestTimeout, s == http.StatusTooManyRequests:
	case s == http.StatusNotImplemented, s >= 300 && s < 500:
		return recordstore.Refusal("%w", f)
	}
	return f
}

// Item returns what the answer to a read of an object says, whose version is in a header. missing reports
// whether a failure says that there is none, and absent is then its version. The dates of answers
// have no fractions of a second, and the server's clock may jump by skew. If skew is zero, no
// dates are used.
func Item(value []byte, res *http.Response, err error, missing func(f *Failure) bool, absent, header string, skew time.Duration) (recordstore.Item, error) {
	if f := (*Failure)(nil); errors.As(err, &f) && missing(f) {
		floor, err := FloorAt(f.Res)
		return recordstore.Item{Version: absent, Floor: floor}, err
	} else if err != nil {
		return recordstore.Item{}, err
	}
	it := recordstore.Item{Value: value, Version: res.Header.Get(header)}
	if it.Version == "" {
		return recordstore.Item{}, recordstore.Refusal("the server sends no %s of an object", header)
	}
	now, err := time.Parse(time.RFC1123, res.Header.Get("Date"))
	written, err2 := time.Parse(time.RFC1123, res.Header.Get("Last-Modified"))
	if skew > 0 && err == nil && err2 == nil {
		it.Now, it.Written = now, written.Add(skew+time.Second)
	}
	return it, nil
}
