package azblobstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// driver keeps records in blobs.
type driver struct {
	o      Options
	client objects.Client
	login  login
	node   string // names the server and the container in errors
}

// Describe implements recordstore.Driver.
func (d *driver) Describe() store.Caps {
	c := store.Caps{Engine: "azblob", Reach: "network", Clock: "each client's own, from when it sees a lease", Class: store.CrashSafe}
	if d.o.Endpoint != "" {
		c.Class = store.Efficiency
	}
	return c
}

// Node implements objects.Driver.
func (d *driver) Node() string { return d.node }

// absent is the version of a blob that does not exist.
const absent = ""

func (d *driver) object(key string) string { return d.o.Prefix + "/" + key }

// apiVersion is the version of the protocol.
const apiVersion = "2023-11-03"

// do makes one request for a blob, or for the container if blob is empty.
func (d *driver) do(ctx context.Context, method, blob string, query url.Values, header http.Header, body []byte) ([]byte, *http.Response, error) {
	to, err := url.Parse(d.o.server() + "/" + d.o.container)
	if err != nil {
		return nil, nil, err
	}
	if blob != "" {
		to = to.JoinPath(blob)
	}
	to.RawQuery = query.Encode()
	if header == nil {
		header = http.Header{}
	}
	header.Set("x-ms-version", apiVersion)
	header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	if err := d.login.authorize(ctx, method, to, header, len(body)); err != nil {
		return nil, nil, err
	}
	return d.client.Do(ctx, method, to.String(), header, body)
}

// say completes f by what the server says.
func say(f *objects.Failure, body []byte) {
	var said struct{ Code, Message string }
	if xml.Unmarshal(withoutMark(body), &said) == nil {
		f.Code, f.Text = said.Code, said.Message
	}
	if code := f.Res.Header.Get("x-ms-error-code"); code != "" {
		f.Code = code
	}
}

// withoutMark returns text without the mark of its encoding, with which Azure begins.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }

// conflicts are the codes of answers that say that a blob has another version.
var conflicts = map[string]bool{"ConditionNotMet": true, "TargetConditionNotMet": true, "BlobAlreadyExists": true, "UnauthorizedBlobOverwrite": true, "BlobNotFound": true}

func conflict(f *objects.Failure) bool { return conflicts[f.Code] }

// Read implements recordstore.Driver.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	value, res, err := d.do(ctx, http.MethodGet, d.object(key), nil, nil, nil)
	return objects.Item(value, res, err, missing, absent, "ETag", d.o.Skew)
}

func missing(f *objects.Failure) bool { return f.Code == "BlobNotFound" }

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, _ bool) (string, error) {
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	header.Set("x-ms-blob-type", "BlockBlob")
	if version == absent {
		header.Set("If-None-Match", "*")
	} else {
		header.Set("If-Match", version)
	}
	_, res, err := d.do(ctx, http.MethodPut, d.object(key), nil, header, value)
	if err != nil {
		return "", err
	}
	if next := res.Header.Get("ETag"); next != "" {
		return next, nil
	}
	return "", errors.New("the server sends no ETag of a blob that it has written")
}

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	return objects.List(ctx, d.object(""), d.page, d.Read, each)
}

func (d *driver) page(ctx context.Context, called string) (names []string, next string, err error) {
	query := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {d.object("")}}
	if called != "" {
		query.Set("marker", called)
	}
	answer, _, err := d.do(ctx, http.MethodGet, "", query, nil, nil)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Blobs      []struct{ Name string } `xml:"Blobs>Blob"`
		NextMarker string
	}
	err = xml.Unmarshal(withoutMark(answer), &page)
	for _, b := range page.Blobs {
		names = append(names, b.Name)
	}
	return names, page.NextMarker, err
}

// Probe implements objects.Driver.
func (d *driver) Probe(ctx context.Context) error {
	return objects.Conditions{IfAbsent: "If-None-Match", IfSame: "If-Match", Absent: absent, Other: `"0x` + strings.ToUpper(rand.Text()) + `"`}.Try(ctx, d, objects.ProbeKey)
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	d.client.HTTP.CloseIdleConnections()
	return nil
}
