package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"
	externaljwtv1 "k8s.io/externaljwt/apis/v1"
)

// signer is a program that signs tokens.
type signer struct {
	externaljwtv1.UnimplementedExternalJWTSignerServer

	mu      sync.Mutex
	header  string // of tokens
	key     *ecdsa.PrivateKey
	answer  *externaljwtv1.FetchKeysResponse
	maxLife int64
}

func (s *signer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *signer) Sign(_ context.Context, r *externaljwtv1.SignJWTRequest) (*externaljwtv1.SignJWTResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	header := base64.RawURLEncoding.EncodeToString([]byte(s.header))
	signature, err := jwt.SigningMethodES256.Sign(header+"."+r.GetClaims(), crypto.Signer(s.key))
	if err != nil {
		return nil, err
	}
	return &externaljwtv1.SignJWTResponse{
		Header: header, Signature: base64.RawURLEncoding.EncodeToString(signature),
	}, nil
}

func (s *signer) FetchKeys(context.Context, *externaljwtv1.FetchKeysRequest) (*externaljwtv1.FetchKeysResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer, nil
}

func (s *signer) Metadata(context.Context, *externaljwtv1.MetadataRequest) (*externaljwtv1.MetadataResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &externaljwtv1.MetadataResponse{MaxTokenExpirationSeconds: s.maxLife}, nil
}

func publicKey(t *testing.T, id string, key *ecdsa.PrivateKey) *externaljwtv1.Key {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return &externaljwtv1.Key{KeyId: id, Key: der}
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// startSigner returns a program with one key, "one", and its socket.
func startSigner(t *testing.T) (*signer, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "signer") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{header: `{"alg":"ES256","kid":"one","typ":"JWT"}`, key: newECKey(t), maxLife: 7200}
	s.answer = &externaljwtv1.FetchKeysResponse{
		Keys:          []*externaljwtv1.Key{publicKey(t, "one", s.key)},
		DataTimestamp: timestamppb.Now(), RefreshHintSeconds: 3600,
	}
	server := grpc.NewServer()
	externaljwtv1.RegisterExternalJWTSignerServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, socket
}

func openExternal(t *testing.T, socket string) *Keys {
	t.Helper()
	keys, err := OpenExternal(t.Context(), socket, KeyConfig{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); keys.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return keys
}

func TestExternalSigner(t *testing.T) {
	t.Parallel()
	s, socket := startSigner(t)
	keys := openExternal(t, socket)
	tokens := New(Config{Keys: keys})
	if keys.MaxLife() != 2*time.Hour {
		t.Errorf("tokens last %s", keys.MaxLife())
	}
	token, err := tokens.Issue(t.Context(), aRequest)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tokens.prove(t.Context(), token)
	if err != nil || c.Bound == nil || c.Bound.Account != aRequest.Account || len(keys.Public()) != 1 {
		t.Errorf("%+v, %v, %d keys", c, err, len(keys.Public()))
	}
	for header, want := range map[string]string{
		`{"alg":"ABC","kid":"one","typ":"JWT"}`:                                 `while validating header: bad signing algorithm "ABC"`,
		`{"alg":"ES256","kid":"one","typ":"ABC"}`:                               "while validating header: bad type",
		`{"alg":"ES256","typ":"JWT"}`:                                           "while validating header: key id missing",
		`{"alg":"ES256","kid":"one","typ":"JWT","jku":1}`:                       `while validating header: while parsing header JSON: json: unknown field "jku"`,
		`{"alg":"ES256","kid":"` + strings.Repeat("a", 1025) + `","typ":"JWT"}`: "while validating header: key id longer than 1 kb",
	} {
		s.set(func() { s.header = header })
		if _, err := tokens.Issue(t.Context(), aRequest); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", header, err, want)
		}
	}
}

// TestExternalSignerKeys checks that a token with an unknown key triggers a fetch, and that no token is signed with an
// unpublished key.
func TestExternalSignerKeys(t *testing.T) {
	t.Parallel()
	s, socket := startSigner(t)
	keys := openExternal(t, socket)
	tokens := New(Config{Keys: keys})
	other := newECKey(t)
	s.set(func() { s.key, s.header = other, `{"alg":"ES256","kid":"two","typ":"JWT"}` })
	longAgo := func() { // as if nothing had been fetched recently
		keys.external.mu.Lock()
		defer keys.external.mu.Unlock()
		keys.external.fetched = time.Time{}
	}
	token, err := tokens.Issue(t.Context(), aRequest)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.prove(t.Context(), token); err == nil || err.Error() != "invalid signature, no keys found" {
		t.Errorf("a token of a key that is not among the program's: %v", err)
	}
	two := publicKey(t, "two", other)
	s.set(func() { s.answer.Keys = append(s.answer.Keys, two) })
	longAgo()
	if _, err := tokens.prove(t.Context(), token); err != nil {
		t.Errorf("the key is not fetched: %v", err)
	}
	three := publicKey(t, "three", other)
	three.ExcludeFromOidcDiscovery = true
	s.set(func() {
		s.answer.Keys, s.header = append(s.answer.Keys, three), `{"alg":"ES256","kid":"three","typ":"JWT"}`
	})
	const want = "while validating header: key used for signing JWT (kid: three) is excluded from OIDC discovery docs"
	if _, err := tokens.Issue(t.Context(), aRequest); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if strings.Contains(string(tokens.KeySet()), `"three"`) || !strings.Contains(string(tokens.KeySet()), `"two"`) {
		t.Errorf("published: %s", tokens.KeySet())
	}
}

func TestExternalSignerRefused(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*signer){
		"found no keys":                        func(s *signer) { s.answer.Keys = nil },
		"found invalid refresh hint (0s)":      func(s *signer) { s.answer.RefreshHintSeconds = 0 },
		"invalid data timestamp":               func(s *signer) { s.answer.DataTimestamp = nil },
		`found invalid public key id ""`:       func(s *signer) { s.answer.Keys[0].KeyId = "" },
		`key "one": asn1:`:                     func(s *signer) { s.answer.Keys[0].Key = []byte{1} },
		"its tokens last 9m59s at most, which": func(s *signer) { s.maxLife = 599 },
	} {
		s, socket := startSigner(t)
		s.set(func() { change(s) })
		if _, err := OpenExternal(t.Context(), socket, KeyConfig{Log: slog.New(slog.DiscardHandler)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
