package serviceaccount

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	externaljwtv1 "k8s.io/externaljwt/apis/v1"

	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

// external is a program that signs tokens and publishes the keys for verifying them (KEP-740, k8s.io/externaljwt),
// reached through a socket. It replaces keys in files.
type external struct {
	connection *grpc.ClientConn
	client     externaljwtv1.ExternalJWTSignerClient
	metrics    *externalMetrics
	// maxLife is how long a token may last at most.
	maxLife time.Duration

	mu      sync.Mutex // held while keys are fetched
	fetched time.Time  // time of the last attempt
	hint    time.Duration
}

// Limits of requests to the program. All are Kubernetes' except the last: a token with an unknown key triggers a fetch
// at most at this interval, because anyone can invent such tokens.
const (
	externalStart    = time.Minute
	externalCall     = 10 * time.Second
	externalRetry    = 10 * time.Second
	externalUnknown  = time.Second
	longestKeyID     = 1024
	shortestLifetime = 10 * time.Minute
)

// OpenExternal waits for the program at a socket, "@name" for an abstract one, and fetches its keys.
func OpenExternal(ctx context.Context, socket string, c KeyConfig) (*Keys, error) {
	e := &external{metrics: newExternalMetrics(c.Metrics)}
	var err error
	e.connection, err = grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithDisableServiceConfig(), grpc.WithMaxHeaderListSize(foreign.MaxHeader),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithChainUnaryInterceptor(e.metrics.measure()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return nil, fmt.Errorf("signer of service accounts' tokens at %s: %w", socket, err)
	}
	e.client = externaljwtv1.NewExternalJWTSignerClient(e.connection)
	k := &Keys{config: c, external: e}
	if err := k.openExternal(ctx); err != nil {
		_ = e.connection.Close()
		return nil, fmt.Errorf("signer of service accounts' tokens at %s: %w", socket, err)
	}
	return k, nil
}

func (k *Keys) openExternal(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, externalStart)
	defer cancel()
	if err := k.fetch(ctx); err != nil {
		return err
	}
	about, err := k.external.client.Metadata(ctx, &externaljwtv1.MetadataRequest{})
	if err != nil {
		return fmt.Errorf("ask for its metadata: %w", foreign.Error(err))
	}
	k.external.maxLife = time.Duration(about.GetMaxTokenExpirationSeconds()) * time.Second
	if k.external.maxLife < shortestLifetime {
		return fmt.Errorf("its tokens last %s at most, which is less than %s", k.external.maxLife, shortestLifetime)
	}
	return nil
}

// MaxLife returns the maximum lifetime of tokens, 0 if there is none.
func (k *Keys) MaxLife() time.Duration {
	if k.external == nil {
		return 0
	}
	return k.external.maxLife
}

// fetch replaces the keys by the program's current ones.
func (k *Keys) fetch(ctx context.Context) error {
	k.external.mu.Lock()
	defer k.external.mu.Unlock()
	return k.fetchLocked(ctx)
}

func (k *Keys) fetchLocked(ctx context.Context) error {
	e := k.external
	answer, err := e.client.FetchKeys(ctx, &externaljwtv1.FetchKeysRequest{})
	e.fetched = time.Now()
	e.metrics.fetched(err)
	if err != nil {
		return fmt.Errorf("fetch its keys: %w", foreign.Error(err))
	}
	set, err := externalKeys(answer)
	if err != nil {
		return fmt.Errorf("fetch its keys: %w", foreign.Error(err))
	}
	e.hint = time.Duration(answer.GetRefreshHintSeconds()) * time.Second
	e.metrics.dated(answer.GetDataTimestamp().AsTime())
	if old := k.current.Load(); old == nil || !bytes.Equal(old.content, set.content) {
		k.current.Store(set)
		k.config.Log.Info("keys of service accounts have been fetched", "believed", len(set.all))
	}
	return nil
}

// externalKeys converts a response of the program.
func externalKeys(answer *externaljwtv1.FetchKeysResponse) (*keySet, error) {
	if hint := answer.GetRefreshHintSeconds(); hint <= 0 {
		return nil, fmt.Errorf("found invalid refresh hint (%ds)", hint)
	}
	if len(answer.GetKeys()) == 0 {
		return nil, errors.New("found no keys")
	}
	if err := answer.GetDataTimestamp().CheckValid(); err != nil {
		return nil, fmt.Errorf("invalid data timestamp: %w", err)
	}
	set := &keySet{}
	for _, one := range answer.GetKeys() {
		if id := one.GetKeyId(); id == "" || len(id) > longestKeyID {
			return nil, fmt.Errorf("found invalid public key id %q", id)
		}
		public, err := x509.ParsePKIXPublicKey(one.GetKey())
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", one.GetKeyId(), err)
		}
		key, err := newKey(public)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", one.GetKeyId(), err)
		}
		key.ID, key.Unpublished = one.GetKeyId(), one.GetExcludeFromOidcDiscovery()
		set.all = append(set.all, key)
		set.content = fmt.Appendf(set.content, "%q %t %x\n", key.ID, key.Unpublished, one.GetKey())
	}
	return set, nil
}

// lookFor fetches the keys if none has the ID, unless that was tried within pause, and returns the current ones.
func (k *Keys) lookFor(ctx context.Context, id string, pause time.Duration) *keySet {
	set := k.current.Load()
	if k.external == nil || id == "" || set.has(id) {
		return set
	}
	k.external.mu.Lock()
	defer k.external.mu.Unlock()
	if set = k.current.Load(); set.has(id) || time.Since(k.external.fetched) < pause {
		return set
	}
	ctx, cancel := context.WithTimeout(ctx, externalCall)
	defer cancel()
	if err := k.fetchLocked(ctx); err != nil {
		k.config.Log.Error("keys of service accounts cannot be fetched; the previous keys stay in use", "error", err)
	}
	return k.current.Load()
}

func (s *keySet) has(id string) bool {
	for _, key := range s.all {
		if key.ID == id {
			return true
		}
	}
	return false
}

// runExternal fetches the keys at the program's interval, until ctx ends.
func (k *Keys) runExternal(ctx context.Context) {
	defer func() { _ = k.external.connection.Close() }()
	k.external.mu.Lock()
	timer := time.NewTimer(k.external.hint)
	k.external.mu.Unlock()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		call, cancel := context.WithTimeout(ctx, externalStart)
		err := k.fetch(call)
		cancel()
		k.external.mu.Lock()
		next := k.external.hint
		k.external.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			k.config.Log.Error("keys of service accounts cannot be fetched; the previous keys stay in use", "error", err)
			next = externalRetry
		}
		timer.Reset(next)
	}
}

// signExternally has the program sign claims, and returns the token.
func (k *Keys) signExternally(ctx context.Context, c *claims) (token string, err error) {
	defer func() { k.external.metrics.signed(err) }()
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	encoded := base64.RawURLEncoding.EncodeToString(payload)
	ctx, cancel := context.WithTimeout(ctx, externalCall)
	defer cancel()
	answer, err := k.external.client.Sign(ctx, &externaljwtv1.SignJWTRequest{Claims: encoded})
	if err != nil {
		return "", fmt.Errorf("while signing jwt: %w", err)
	}
	if err := k.checkHeader(ctx, answer.GetHeader()); err != nil {
		return "", fmt.Errorf("while validating header: %w", err)
	}
	if answer.GetSignature() == "" {
		return "", errors.New("empty signature returned")
	}
	return answer.GetHeader() + "." + encoded + "." + answer.GetSignature(), nil
}

// checkHeader refuses tokens that could not be verified, or only by clients that already have the key.
func (k *Keys) checkHeader(ctx context.Context, encoded string) error {
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("while unwrapping header: %w", err)
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
		Type      string `json:"typ"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&header); err != nil {
		return fmt.Errorf("while parsing header JSON: %w", err)
	}
	switch {
	case header.Type != "JWT":
		return errors.New("bad type")
	case header.KeyID == "":
		return errors.New("key id missing")
	case len(header.KeyID) > longestKeyID:
		return errors.New("key id longer than 1 kb")
	}
	switch header.Algorithm {
	case "RS256", "ES256", "ES384", "ES512":
	default:
		return fmt.Errorf("bad signing algorithm %q", header.Algorithm)
	}
	for _, key := range k.lookFor(ctx, header.KeyID, 0).all {
		if key.ID == header.KeyID && key.Unpublished {
			return fmt.Errorf("key used for signing JWT (kid: %s) is excluded from OIDC discovery docs", header.KeyID)
		}
	}
	return nil
}
