package gcsstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// driver keeps records in objects.
type driver struct {
	o      Options
	client objects.Client
	node   string // names the bucket in errors
}

// Describe implements recordstore.Driver.
func (d *driver) Describe() store.Caps {
	c := store.Caps{Engine: "gcs", Reach: "network", Clock: "each client's own, from when it sees a lease", Class: store.CrashSafe}
	if d.o.Endpoint != endpoint {
		c.Class = store.Efficiency
	}
	return c
}

// Node implements objects.Driver.
func (d *driver) Node() string { return d.node }

// absent is the generation of an object that does not exist.
const absent = "0"

func (d *driver) object(key string) string { return d.o.Prefix + "/" + key }

// do makes one request.
func (d *driver) do(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte) ([]byte, *http.Response, error) {
	return d.client.Do(ctx, method, d.o.Endpoint+path+"?"+query.Encode(), header, body)
}

// say completes f by what the server says.
func say(f *objects.Failure, body []byte) {
	var said struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &said) == nil && said.Error.Message != "" {
		f.Text = said.Error.Message
		if len(said.Error.Errors) > 0 {
			f.Code = said.Error.Errors[0].Reason
		}
	}
}

func conflict(f *objects.Failure) bool {
	return f.Res.StatusCode == http.StatusPreconditionFailed || f.Res.StatusCode == http.StatusConflict
}

func (d *driver) bucket() string { return "/b/" + url.PathEscape(d.o.bucket) + "/o" }

// Read implements recordstore.Driver.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	value, res, err := d.do(ctx, http.MethodGet, "/storage/v1"+d.bucket()+"/"+url.PathEscape(d.object(key)), url.Values{"alt": {"media"}}, nil, nil)
	return objects.Item(value, res, err, missing, absent, "X-Goog-Generation", d.o.Skew)
}

func missing(f *objects.Failure) bool {
	return f.Res.StatusCode == http.StatusNotFound && !strings.Contains(f.Text, "bucket does not exist")
}

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, _ bool) (string, error) {
	content, body := d.upload(key, value)
	query := url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {version}}
	for {
		answer, _, err := d.do(ctx, http.MethodPost, "/upload/storage/v1"+d.bucket(), query, http.Header{"Content-Type": {content}}, body)
		if f := (*objects.Failure)(nil); errors.As(err, &f) && f.Res.StatusCode == http.StatusTooManyRequests {
			// The object was replaced less than a second ago. Nothing was written.
			if clock.Sleep(ctx, time.Second/2+rand.N(time.Second)); ctx.Err() == nil {
				continue
			}
		}
		if err != nil {
			return "", err
		}
		var o struct{ Generation string }
		if err := json.Unmarshal(answer, &o); err != nil || o.Generation == "" {
			return "", errors.New("the server sends no generation of an object that it has written")
		}
		return o.Generation, nil
	}
}

// upload returns the type and the body of a request that writes an object. No cache keeps it.
func (d *driver) upload(key string, value []byte) (content string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part := func(content string, text []byte) {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {content}})
		if err == nil {
			_, err = p.Write(text)
		}
		if err != nil {
			panic(err) // a buffer takes all
		}
	}
	about, err := json.Marshal(map[string]string{"name": d.object(key), "cacheControl": "no-store", "contentType": "application/octet-stream"})
	if err != nil {
		panic(err) // strings can be encoded
	}
	part("application/json", about)
	part("application/octet-stream", value)
	w.Close()
	return "multipart/related; boundary=" + w.Boundary(), b.Bytes()
}

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	return objects.List(ctx, d.object(""), d.page, d.Read, each)
}

func (d *driver) page(ctx context.Context, called string) (names []string, next string, err error) {
	query := url.Values{"prefix": {d.object("")}}
	if called != "" {
		query.Set("pageToken", called)
	}
	answer, _, err := d.do(ctx, http.MethodGet, "/storage/v1"+d.bucket(), query, nil, nil)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Items         []struct{ Name string }
		NextPageToken string
	}
	err = json.Unmarshal(answer, &page)
	for _, o := range page.Items {
		names = append(names, o.Name)
	}
	return names, page.NextPageToken, err
}

// Probe implements objects.Driver. The first time it takes about a second, since an object is
// replaced that was just made.
func (d *driver) Probe(ctx context.Context) error {
	return objects.Conditions{IfAbsent: "ifGenerationMatch=0", IfSame: "ifGenerationMatch", Absent: absent, Other: "1"}.Try(ctx, d, objects.ProbeKey) // no object has this generation
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	d.client.HTTP.CloseIdleConnections()
	return nil
}
