package guardtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/guard/httpguard"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// holder is a process that holds the lock.
type holder struct {
	*child.Process
	out *json.Decoder
	in  io.Writer
	log *os.File
}

func startHolder(t *testing.T, job task) *holder {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holderEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	// Our own pipe: the last output of the process must be there when it is
	// gone.
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	defer w.Close()
	h := &holder{out: json.NewDecoder(bufio.NewReader(out))}
	if h.log, err = os.Create(t.TempDir() + "/stderr"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.log.Close() })
	cmd.Stdout, cmd.Stderr = w, h.log
	if h.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if h.Process, err = child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Kill)
	return h
}

// report returns the next report of the holder.
func (h *holder) report(t *testing.T) (r report) {
	t.Helper()
	if err := h.out.Decode(&r); err != nil {
		said, _ := os.ReadFile(h.log.Name())
		t.Fatalf("no report from the holder: %v\n%s", err, said)
	}
	if r.Failed != "" {
		t.Fatalf("the holder: %s", r.Failed)
	}
	return r
}

// frozen starts a holder, stops it between reading and writing, and takes the lock over,
// which takes until the holder's lease has expired. thaw makes the holder write.
func frozen(t *testing.T, job task) (h *holder, second writer, thaw func()) {
	t.Helper()
	h = startHolder(t, job)
	first := h.report(t)
	if err := h.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	lease, release, err := acquire(ctx, job.Redis, job.Lock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	if lease.Token() <= first.Token {
		t.Fatalf("token %v after %v, want a larger one", lease.Token(), first.Token)
	}
	return h, writer{token: lease.Token(), guarded: job.Guarded, name: "B"}, func() {
		t.Helper()
		if _, err := io.WriteString(h.in, "\n"); err != nil {
			t.Fatal(err)
		}
		if err := h.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}

// kinds returns all ways to guard data, each with what makes the goods.
func kinds() map[string]func(t *testing.T, guarded bool) goods {
	all := map[string]func(*testing.T, bool) goods{}
	for _, how := range []string{"tx", "row"} {
		for _, f := range usual {
			all[f.name+" "+how] = func(t *testing.T, _ bool) goods { return sqlGoodsOf(t, f, how) }
		}
	}
	for _, how := range []string{"set", "delete", "script"} {
		all["redis "+how] = func(t *testing.T, _ bool) goods {
			return goods{Kind: "redis " + how, Source: redisServer.Addr(), Name: fmt.Sprint("goods:", tests.Add(1))}
		}
	}
	all["http"] = func(t *testing.T, guarded bool) goods { return httpGoodsWith(t, guarded, nil) }
	all["http with a memory in PostgreSQL"] = func(t *testing.T, guarded bool) goods {
		d := usual[0].open(t)
		return httpGoodsWith(t, guarded, &httpguard.Options{Memory: d.guard.Memory(d)})
	}
	all["http with a memory in Redis"] = func(t *testing.T, guarded bool) goods {
		made, err := goods{Kind: "redis set", Source: redisServer.Addr()}.open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(made.close)
		g := httpGoodsWith(t, guarded, &httpguard.Options{Memory: made.(*redisGoods).guard})
		g.Source += fmt.Sprint(tests.Add(1)) // its own resource in a Redis that all tests share
		return g
	}
	return all
}

func sqlGoodsOf(t *testing.T, f flavour, how string) goods {
	g := goods{Kind: "sql " + how, Dialect: f.dialect, Driver: f.driver, Source: f.source(t.TempDir()), Name: fmt.Sprint("goods_", tests.Add(1))}
	made, err := g.open()
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	if err := made.(*sqlGoods).create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// httpGoodsWith serves one text, behind a guard if guarded.
func httpGoodsWith(t *testing.T, guarded bool, o *httpguard.Options) goods {
	var mu sync.Mutex
	var content []byte
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			w.Write(content)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		content = body
	})
	if guarded {
		h = httpguard.New(h, func(r *http.Request) string { return r.URL.Path }, o)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return goods{Kind: "http", Source: s.URL + "/goods"}
}

// A holder reads, is frozen until long after its validity, and then writes a
// value based on what it read. Meanwhile another holder has written. With the
// guard, the late write is refused and nothing is lost. Without it, the same
// sequence loses the other holder's write.
func TestFrozenHolderCannotWrite(t *testing.T) {
	t.Parallel()
	for name, make := range kinds() {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/guarded=%v", name, guarded), func(t *testing.T) {
				t.Parallel()
				g := make(t, guarded)
				h, second, thaw := frozen(t, task{Goods: g, Redis: redisServer.URL(), Lock: "lock of " + t.Name(), Guarded: guarded})
				data, err := g.open()
				if err != nil {
					t.Fatal(err)
				}
				defer data.close()
				before, err := data.begin(t.Context(), second)
				if err == nil {
					err = data.write(t.Context(), second, before)
				}
				if err != nil {
					t.Fatalf("the second holder: %v", err)
				}
				thaw()
				late := h.report(t)
				after, err := data.read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !guarded {
					if after == "B" || !late.Wrote {
						t.Errorf("without the guard, the text is %q, the late holder: %+v; want the write of B lost: else this test shows nothing", after, late)
					}
					return
				}
				if after != "B" || late.Wrote {
					t.Errorf("the text is %q, want B; the late holder: %+v, want its write refused", after, late)
				}
				if s := late.Stale; s == nil || s.Offered != late.Token || s.Highest != second.token {
					t.Errorf("the late holder, with token %v, reported %+v, want a refusal for %+v", late.Token, late, second)
				}
			})
		}
	}
}

// A holder that is frozen within its transaction makes the next one wait. Its
// write is then not late: the next holder sees it.
func TestFrozenWithinItsTransaction(t *testing.T) {
	t.Parallel()
	for _, f := range usual {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			g := sqlGoodsOf(t, f, "tx")
			h, second, thaw := frozen(t, task{Goods: g, Redis: redisServer.URL(), Lock: "lock of " + t.Name(), Guarded: true, Inside: true})
			made, err := g.open()
			if err != nil {
				t.Fatal(err)
			}
			data := made.(*sqlGoods)
			defer data.close()
			var next sync.WaitGroup
			next.Go(func() {
				if err := data.change(t.Context(), second, func() {}); err != nil {
					t.Errorf("the second holder: %v", err)
				}
			})
			(&database{flavour: f, DB: data.db}).waiters(t, g.Name, 1)
			thaw()
			if first := h.report(t); !first.Wrote {
				t.Errorf("the first holder: %+v, want it to have written", first)
			}
			next.Wait()
			if after, err := data.read(t.Context()); after != "AB" || err != nil {
				t.Errorf("the text is %q, %v; want AB", after, err)
			}
		})
	}
}
