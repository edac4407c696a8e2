package rights

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// File is a file of rights, which is read again when it changes. It is safe for concurrent use.
type File struct {
	path string
	bad  func(error) // is told why the file is not used as it is now

	mu     sync.Mutex
	seen   os.FileInfo
	looked time.Time
	now    *set
}

// set is what a file says.
type set struct {
	byToken   map[[sha256.Size]byte]*Client
	bySubject map[string]*Client
}

// lookEvery is how often the file is looked at, at most.
const lookEvery = time.Second

// Open reads a file of rights. If the file is wrong later, the rights stay as they were, and bad
// is called.
func Open(path string, bad func(error)) (*File, error) {
	f := &File{path: path, bad: bad}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if f.now, err = read(path); err != nil {
		return nil, err
	}
	f.seen, f.looked = info, time.Now()
	return f, nil
}

func read(path string) (*set, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("rights in %s: %w", path, err)
	}
	return s, nil
}

// current returns what the file says now.
func (f *File) current() *set {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Sub(f.looked) < lookEvery {
		return f.now
	}
	f.looked = now
	info, err := os.Stat(f.path)
	if err == nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime()) && info.Size() == f.seen.Size() {
		return f.now
	}
	var s *set
	if err == nil {
		s, err = read(f.path)
	}
	if err != nil {
		f.bad(err)
		return f.now
	}
	f.now, f.seen = s, info
	return f.now
}

// Client returns the client that sent r, by its token or else by its certificate. It returns nil
// if the file names none.
func (f *File) Client(r *http.Request) *Client {
	if auth := r.Header.Get("Authorization"); auth != "" {
		scheme, token, _ := strings.Cut(auth, " ")
		switch {
		case strings.EqualFold(scheme, "Bearer"):
			token = strings.TrimSpace(token)
		case strings.EqualFold(scheme, "Basic"): // for browsers: the password is the token
			_, token, _ = r.BasicAuth()
		default:
			return nil
		}
		return f.ByToken(token)
	}
	return f.ByCertificate(r.TLS)
}

// ByToken returns the client that has the token, or nil if the file names none.
func (f *File) ByToken(token string) *Client {
	return f.current().byToken[sha256.Sum256([]byte(token))]
}

// ByCertificate returns the client at the other end of a connection by its certificate, or nil
// if the file names none. t may be nil.
func (f *File) ByCertificate(t *tls.ConnectionState) *Client {
	if t == nil || len(t.VerifiedChains) == 0 {
		return nil
	}
	s := f.current()
	for _, subject := range subjects(t.VerifiedChains[0][0]) {
		if c := s.bySubject[subject]; c != nil {
			return c
		}
	}
	return nil
}

// subjects are the ways in which a file can name the owner of a certificate: by the URIs and
// names that it is for, and by its whole subject.
func subjects(c *x509.Certificate) []string {
	var all []string
	for _, u := range c.URIs {
		all = append(all, "URI:"+u.String())
	}
	for _, name := range c.DNSNames {
		all = append(all, "DNS:"+name)
	}
	return append(all, c.Subject.String())
}

// fileJSON is the content of a file.
type fileJSON struct {
	Clients []struct {
		Name     string   `json:"name"`
		Tokens   []string `json:"token_sha256"`
		Subjects []string `json:"subjects"`
		Rules    []struct {
			Prefix *string  `json:"prefix"`
			Rights []string `json:"rights"`
		} `json:"rules"`
		Limits Limits `json:"limits"`
	} `json:"clients"`
}

// parse reads the content of a file.
func parse(b []byte) (*set, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var j fileJSON
	if err := d.Decode(&j); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one JSON value")
	}
	s := &set{map[[sha256.Size]byte]*Client{}, map[string]*Client{}}
	var names []string
	for _, one := range j.Clients {
		c := &Client{Name: one.Name, Limits: one.Limits}
		switch {
		case c.Name == "" || len(c.Name) > 100 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return nil, fmt.Errorf("client %q: the name has 1 to 100 characters, and no control characters", c.Name)
		case slices.Contains(names, c.Name):
			return nil, fmt.Errorf("two clients are called %q", c.Name)
		case len(one.Tokens)+len(one.Subjects) == 0:
			return nil, fmt.Errorf("client %q has neither token_sha256 nor subjects", c.Name)
		case c.Limits.RequestsPerSecond < 0 || c.Limits.Streams < 0 || c.Limits.Names < 0:
			return nil, fmt.Errorf("client %q: a limit cannot be negative", c.Name)
		}
		names = append(names, c.Name)
		for _, r := range one.Rules {
			if r.Prefix == nil {
				return nil, fmt.Errorf(`client %q: a rule has no prefix: give it "" for all locks`, c.Name)
			}
			var rights Right
			for _, name := range r.Rights {
				right, ok := rightOf(name)
				if !ok {
					return nil, fmt.Errorf("client %q: there is no right %q: choose look, lock, break", c.Name, name)
				}
				rights |= right
			}
			c.rules = append(c.rules, rule{*r.Prefix, rights})
		}
		for _, token := range one.Tokens {
			var sum [sha256.Size]byte
			if b, err := hex.DecodeString(token); err != nil || copy(sum[:], b) != len(sum) || len(b) != len(sum) {
				return nil, fmt.Errorf("client %q: token_sha256 has to be 64 hexadecimal digits, the SHA-256 of the token", c.Name)
			}
			if s.byToken[sum] != nil {
				return nil, fmt.Errorf("clients %q and %q have the same token", s.byToken[sum].Name, c.Name)
			}
			s.byToken[sum] = c
		}
		for _, subject := range one.Subjects {
			if s.bySubject[subject] != nil || subject == "" {
				return nil, fmt.Errorf("client %q: subject %q is empty or named twice", c.Name, subject)
			}
			s.bySubject[subject] = c
		}
	}
	return s, nil
}

func rightOf(name string) (Right, bool) {
	for right, n := range names {
		if n == name {
			return right, true
		}
	}
	return 0, false
}
