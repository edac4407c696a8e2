package s3store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// driver keeps records in objects.
type driver struct {
	o      Options
	client *s3.Client
	node   string // names the server and the bucket in errors
	aws    bool   // the server is S3 itself
	pace   objects.Pacer
}

// Describe implements recordstore.Driver.
func (d *driver) Describe() store.Caps {
	c := store.Caps{Engine: "s3", Reach: "network", Clock: "each client's own, from when it sees a lease"}
	if d.aws || d.o.Durable {
		c.Class = store.CrashSafe
	}
	return c
}

// Node implements objects.Driver.
func (d *driver) Node() string { return d.node }

// absent is the version of a record that does not exist.
const absent = ""

// raceKey is the key of the object for Examine. Keys of records are hexadecimal or begin with h, so it
// is none.
const raceKey = "race"

func (d *driver) object(key string) *string { return aws.String(d.o.Prefix + "/" + key) }

// request bounds one request: one without an answer is made again.
func (d *driver) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.o.Timeout/4)
}

// Read implements recordstore.Driver.
func (d *driver) Read(ctx context.Context, key string) (recordstore.Item, error) {
	if err := d.pace.Wait(ctx); err != nil {
		return recordstore.Item{}, err
	}
	ctx, cancel := d.request(ctx)
	defer cancel()
	out, err := d.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &d.o.bucket, Key: d.object(key)})
	d.heard(err)
	switch {
	case isAbsent(err):
		floor, err := objects.FloorAt(answer(err))
		return recordstore.Item{Version: absent, Floor: floor}, err
	case err != nil:
		return recordstore.Item{}, explain(err)
	}
	defer out.Body.Close()
	it := recordstore.Item{Version: aws.ToString(out.ETag)}
	if it.Value, err = io.ReadAll(out.Body); err != nil {
		return recordstore.Item{}, err
	}
	if it.Version == "" {
		return recordstore.Item{}, recordstore.Refusal("the server sends no ETag of the object %s", *d.object(key))
	}
	if now, ok := awsmiddleware.GetServerTime(out.ResultMetadata); ok && d.o.Skew > 0 && out.LastModified != nil {
		it.Now, it.Written = now, out.LastModified.Add(d.o.Skew+time.Second) // dates have no fractions of a second
	}
	return it, nil
}

// heard tells the pacer of the outcome of a request.
func (d *driver) heard(err error) {
	if err == nil {
		d.pace.Heard(&http.Response{StatusCode: http.StatusOK})
	} else {
		d.pace.Heard(answer(err))
	}
}

// Write implements recordstore.Driver.
func (d *driver) Write(ctx context.Context, key string, value []byte, version string, _ bool) (string, error) {
	if err := d.pace.Wait(ctx); err != nil {
		return "", err
	}
	ctx, cancel := d.request(ctx)
	defer cancel()
	in := &s3.PutObjectInput{Bucket: &d.o.bucket, Key: d.object(key), Body: bytes.NewReader(value), ContentType: aws.String("application/octet-stream")}
	if version == absent {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	out, err := d.client.PutObject(ctx, in)
	d.heard(err)
	switch {
	case err != nil:
		return "", explain(err)
	case aws.ToString(out.ETag) == "":
		return "", errors.New("the server sends no ETag of an object that it has written")
	}
	return *out.ETag, nil
}

// List implements recordstore.Driver.
func (d *driver) List(ctx context.Context, each func(string, recordstore.Item) error) error {
	return objects.List(ctx, *d.object(""), d.page, d.Read, each, raceKey)
}

func (d *driver) page(ctx context.Context, called string) (names []string, next string, err error) {
	if err := d.pace.Wait(ctx); err != nil {
		return nil, "", err
	}
	ctx, cancel := d.request(ctx)
	defer cancel()
	in := &s3.ListObjectsV2Input{Bucket: &d.o.bucket, Prefix: d.object("")}
	if called != "" {
		in.ContinuationToken = &called
	}
	page, err := d.client.ListObjectsV2(ctx, in)
	d.heard(err)
	if err != nil {
		return nil, "", explain(err)
	}
	for _, o := range page.Contents {
		names = append(names, aws.ToString(o.Key))
	}
	if aws.ToBool(page.IsTruncated) {
		next = aws.ToString(page.NextContinuationToken)
	}
	return names, next, nil
}

// Close implements recordstore.Driver.
func (d *driver) Close() error {
	if c, ok := d.client.Options().HTTPClient.(*http.Client); ok {
		c.CloseIdleConnections()
	}
	return nil
}
