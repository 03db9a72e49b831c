package token

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/bowsprit/bowsprit/internal/testing/hostile"
	"github.com/bowsprit/bowsprit/internal/testing/issuer"
)

// impostor is an issuer with keys from another handler.
type impostor struct {
	keys           http.Handler
	url            string
	fetches, most  atomic.Int64
	fetching       atomic.Int64
	served         chan struct{} // receives after each fetch, if there is room
	began          sync.Mutex
	lastBegan      time.Time
	closest        time.Duration // between the starts of two fetches
	discoveryIsBad bool
}

func (i *impostor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.well-known/openid-configuration" && !i.discoveryIsBad {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.url, "jwks_uri": i.url + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
		})
		return
	}
	i.fetches.Add(1)
	i.most.Store(max(i.most.Load(), i.fetching.Add(1)))
	defer i.fetching.Add(-1)
	i.began.Lock()
	if now := time.Now(); !i.lastBegan.IsZero() && r.URL.RawQuery == "" {
		i.closest = min(i.closest, now.Sub(i.lastBegan))
		i.lastBegan = now
	} else if i.lastBegan.IsZero() {
		i.lastBegan = now
	}
	i.began.Unlock()
	defer func() {
		select {
		case i.served <- struct{}{}:
		default:
		}
	}()
	i.keys.ServeHTTP(w, r)
}

func (i *impostor) start(t *testing.T) OIDC {
	t.Helper()
	i.closest = time.Hour
	s := httptest.NewTLSServer(i)
	t.Cleanup(s.Close)
	i.url = s.URL
	ca := write(t, "ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return OIDC{IssuerURL: i.url, ClientID: "kubernetes", CAFile: ca, SigningAlgs: []string{"ES256"}}
}

// TestHostileKeySets serves hostile key sets while clients send forged tokens with unknown keys.
func TestHostileKeySets(t *testing.T) {
	forger := issuer.New(t)
	for _, keys := range hostile.Servers(t) {
		t.Run(keys.Name, func(t *testing.T) {
			i := &impostor{keys: keys}
			r := open(t, Config{OIDC: i.start(t)})
			before := allocated()
			var all sync.WaitGroup
			const tokens = 20
			for n := range tokens {
				token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
					"iss": i.url, "aud": "kubernetes", "sub": fmt.Sprint(n), "exp": time.Now().Add(time.Hour).Unix(),
				})
				token.Header["kid"] = fmt.Sprint("k", n)
				text, err := token.SignedString(forger.Key)
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					_, _, err := r.Authenticate(t.Context(), text, nil)
					if err == nil {
						t.Error("a forged token was accepted")
					} else if len(err.Error()) > hostile.MaxError {
						t.Errorf("an error of %d bytes", len(err.Error()))
					}
				})
			}
			all.Wait()
			fetches := i.fetches.Load()
			if sent := keys.Sent(); sent > fetches*hostile.MaxSent {
				t.Errorf("%d fetches took %d bytes", fetches, sent)
			}
			if used := allocated() - before; used > 100<<20+uint64(fetches)*(64<<20) {
				t.Errorf("%d fetches allocated %d MB", fetches, used>>20)
			}
			if i.most.Load() > 1 {
				t.Errorf("%d fetches at a time", i.most.Load())
			}
		})
	}
}

// allocated returns the number of bytes that the process has allocated since its start.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestFetchPause uses unknown keys one after the other: the second fetch waits.
func TestFetchPause(t *testing.T) {
	forger := issuer.New(t)
	i := &impostor{keys: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"keys":[]}`))
	})}
	r := open(t, Config{OIDC: i.start(t)})
	for n := range 3 {
		token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": i.url, "aud": "kubernetes", "sub": fmt.Sprint(n), "exp": time.Now().Add(time.Hour).Unix(),
		})
		text, err := token.SignedString(forger.Key)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Authenticate(t.Context(), text, nil); err == nil {
			t.Error("a forged token was accepted")
		}
	}
	if i.fetches.Load() != 3 || i.closest < fetchPause {
		t.Errorf("%d fetches, two of them within %v", i.fetches.Load(), i.closest)
	}
}

// TestHostileDiscovery serves hostile discovery documents. No log line and no error is long.
func TestHostileDiscovery(t *testing.T) {
	for _, document := range hostile.Servers(t) {
		t.Run(document.Name, func(t *testing.T) {
			t.Parallel()
			i := &impostor{keys: document, discoveryIsBad: true, served: make(chan struct{}, 1)}
			var log bytes.Buffer
			r, err := Open(Config{
				OIDC: i.start(t), Audiences: []string{"here"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-i.served:
			case <-time.After(time.Minute):
				t.Fatal("the discovery document was not fetched")
			}
			err = r.issuers.Load().healthy()
			r.Close()
			document.Check(t, err)
			if log.Len() > hostile.MaxError {
				t.Errorf("%d bytes were logged", log.Len())
			}
		})
	}
}

// TestHostileTokenWebhooks makes the token webhook respond like hostile servers.
func TestHostileTokenWebhooks(t *testing.T) {
	for _, answer := range hostile.Servers(t) {
		t.Run(answer.Name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewTLSServer(answer)
			defer s.Close()
			ca := write(t, "ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
			r, err := Open(Config{
				Audiences: []string{"here"}, Log: slog.New(slog.DiscardHandler), WebhookVersion: "v1",
				WebhookFile: write(t, "kubeconfig", fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: hook, cluster: {server: "%s/authenticate", certificate-authority: %s}}]
users: [{name: me, user: {}}]
contexts: [{name: hook, context: {cluster: hook, user: me}}]
current-context: hook
`, s.URL, ca)),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			u, _, err := r.Authenticate(t.Context(), "token", nil)
			if u != nil {
				t.Error("a hostile answer authenticates")
			}
			if err != nil && len(err.Error()) > hostile.MaxError {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if sent := answer.Sent(); sent > 5*hostile.MaxSent { // it is called five times
				t.Errorf("the client took %d bytes", sent)
			}
		})
	}
}
