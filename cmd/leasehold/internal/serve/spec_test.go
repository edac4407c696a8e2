package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// spec is openapi.json, and what of it was used.
var spec struct {
	once     sync.Once
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	used     map[string]bool
}

func loadSpec(t testing.TB) {
	spec.once.Do(func() {
		b, err := os.ReadFile("openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		spec.doc, spec.used = doc.(map[string]any), map[string]bool{}
		spec.compiler = jsonschema.NewCompiler()
		spec.compiler.DefaultDraft(jsonschema.Draft2020)
		spec.compiler.AssertFormat()
		if err := spec.compiler.AddResource("openapi.json", doc); err != nil {
			t.Fatal(err)
		}
	})
}

// validate holds an answer against the schema of that name.
func validate(t testing.TB, schema string, b []byte) {
	t.Helper()
	loadSpec(t)
	spec.mu.Lock()
	defer spec.mu.Unlock()
	s, err := spec.compiler.Compile("openapi.json#/components/schemas/" + schema)
	if err != nil {
		t.Fatal(err)
	}
	spec.used[schema] = true
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("not a %s of openapi.json: %s: %v", schema, b, err)
	}
}

// schemaOf returns the name of the schema of an answer, or "" if it has no body.
func schemaOf(t testing.TB, method, path string, status int, kind string) string {
	t.Helper()
	loadSpec(t)
	if kind == "application/problem+json" {
		return "Problem"
	}
	template := path
	if rest, ok := strings.CutPrefix(path, "/v1/locks/"); ok {
		template = "/v1/locks/{name}"
		if method == http.MethodPost {
			template += rest[strings.LastIndexByte(rest, '/'):]
		}
	}
	at := func(v any, keys ...string) any {
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		return v
	}
	answer := at(spec.doc, "paths", template, strings.ToLower(method), "responses", fmt.Sprint(status))
	if answer == nil {
		t.Errorf("openapi.json has no answer %d of %s %s", status, method, template)
		return ""
	}
	content := at(answer, "content")
	if content == nil {
		return ""
	}
	schema, ok := at(content, kind, "schema", "$ref").(string)
	if !ok {
		if at(content, kind) == nil {
			t.Errorf("openapi.json has no %s as answer %d of %s %s", kind, status, method, template)
		}
		return ""
	}
	return schema[strings.LastIndexByte(schema, '/')+1:]
}

// reply is an answer, decoded.
type reply struct {
	status int
	header http.Header
	kind   string // of a problem
	text   []byte
	body   map[string]any
}

func (r *reply) num(key string) float64 { n, _ := r.body[key].(float64); return n }
func (r *reply) str(key string) string  { s, _ := r.body[key].(string); return s }

// ask sends a request whose path is escaped already, and holds the answer against openapi.json.
func ask(t testing.TB, method, base, path string, body any, headers ...string) *reply {
	t.Helper()
	r := request(t, method, base, path, body, headers...)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return checked(t, method, path, resp, b)
}

func checked(t testing.TB, method, path string, resp *http.Response, b []byte) *reply {
	t.Helper()
	a := &reply{status: resp.StatusCode, header: resp.Header, text: b}
	path, _, _ = strings.Cut(path, "?")
	if schema := schemaOf(t, method, path, resp.StatusCode, resp.Header.Get("Content-Type")); schema != "" && method != http.MethodHead {
		validate(t, schema, b)
	}
	if len(b) > 0 {
		json.Unmarshal(b, &a.body)
	}
	if resp.StatusCode >= 400 {
		if resp.Header.Get("Content-Type") != "application/problem+json" && method != http.MethodHead {
			t.Errorf("%s %s: %d without a problem: %s", method, path, resp.StatusCode, b)
		}
		a.kind = a.str("type")[strings.LastIndexByte(a.str("type"), '#')+1:]
	}
	return a
}

func request(t testing.TB, method, base, path string, body any, headers ...string) *http.Request {
	t.Helper()
	var b io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		b = strings.NewReader(v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base, b)
	if err != nil {
		t.Fatal(err)
	}
	raw, query, _ := strings.Cut(path, "?")
	p, err := url.PathUnescape(raw)
	if err != nil {
		p = raw
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = r.URL.Path+p, r.URL.EscapedPath()+raw, query
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// lines is a stream.
type lines struct {
	t     testing.TB
	d     *json.Decoder
	close func() error
	sent  time.Time
}

// open begins a stream.
func open(t testing.TB, base, path string, body any, headers ...string) *lines {
	t.Helper()
	l := &lines{t: t, sent: time.Now()}
	resp, err := http.DefaultClient.Do(request(t, http.MethodPost, base, path, body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		t.Fatalf("%s: %d: %s", path, resp.StatusCode, b)
	}
	l.d, l.close = json.NewDecoder(resp.Body), resp.Body.Close
	t.Cleanup(func() { resp.Body.Close() })
	return l
}

// next returns the next line that is not alive, and not one of those to skip.
func (l *lines) next(skip ...string) map[string]any {
	l.t.Helper()
	for {
		var raw json.RawMessage
		if err := l.d.Decode(&raw); err != nil {
			l.t.Fatalf("the stream ended: %v", err)
		}
		validate(l.t, "Event", raw)
		var e map[string]any
		json.Unmarshal(raw, &e)
		if event, _ := e["event"].(string); event != "alive" && !slices.Contains(skip, event) {
			return e
		}
	}
}

// over requires the stream to end without another line but heartbeats.
func (l *lines) over() {
	l.t.Helper()
	for {
		var e map[string]any
		if err := l.d.Decode(&e); err != nil {
			return
		}
		if e["event"] != "alive" {
			l.t.Errorf("another line: %v, want the end of the stream", e)
		}
	}
}
