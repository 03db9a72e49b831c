package serviceaccount

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/keyutil"

	"github.com/bowsprit/bowsprit/internal/storage/durable"
)

// KeyConfig configures the keys. The zero value creates a key in memory.
type KeyConfig struct {
	// Dir is the directory of the server's own key without a SigningFile: "service-account.key", PEM, mode 0600. The
	// file may hold several keys: the first signs, and all are accepted.
	Dir string
	// SigningFile holds the private signing key, PEM. KeyFiles hold the accepted keys, public or private; if empty,
	// SigningFile's key is accepted.
	SigningFile string
	KeyFiles    []string
	Log         *slog.Logger          // nil logs nothing
	Metrics     prometheus.Registerer // for an external signer; optional
}

// Keys holds the keys for signing and verifying tokens. They follow changes of their files while the server runs, so
// that a key can be replaced: it is first added to the accepted keys, and then signs.
type Keys struct {
	config   KeyConfig
	current  atomic.Pointer[keySet]
	external *external // nil for local keys
}

// keySet holds the keys at one time.
type keySet struct {
	signer  crypto.Signer
	signing Key
	all     []Key
	content []byte // of the files, to detect changes
}

// Key is a public key and its ID in tokens.
type Key struct {
	ID        string
	Algorithm string // "RS256", "ES256", "ES384" or "ES512"
	Public    crypto.PublicKey
	// Unpublished keys verify tokens but are not published.
	Unpublished bool
}

// OwnKeyFile is the file of the server's own keys.
// OwnKeyFile is the name of the server's own key in KeyConfig.Dir.
const OwnKeyFile = "service-account.key"

// OpenKeys loads the keys, and creates one if there is none. Its errors are one line that names the file.
func OpenKeys(c KeyConfig) (*Keys, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.SigningFile == "" && len(c.KeyFiles) > 0 {
		return nil,
			errors.New(
				"keys that verify tokens need a key that signs them: add --service-account-signing-key-file")
	}
	k := &Keys{config: c}
	if c.SigningFile == "" {
		if err := k.makeOwn(); err != nil {
			return nil, err
		}
		if c.Dir == "" {
			return k, nil
		}
	}
	files, err := k.read()
	if err != nil {
		return nil, err
	}
	set, err := files.parse()
	if err != nil {
		return nil, err
	}
	k.current.Store(set)
	return k, nil
}

// makeOwn creates the server's own key, in memory or, if it is missing, as a file.
//
// It is an elliptic curve key, which Kubernetes accepts: creating an RSA key would take longer than the rest of a
// start.
func (k *Keys) makeOwn() error {
	file := filepath.Join(k.config.Dir, OwnKeyFile)
	if k.config.Dir != "" {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return nil // read reports its errors
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if k.config.Dir == "" {
		set, err := newKeySet(key, []crypto.PublicKey{key.Public()}, nil)
		k.current.Store(set)
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	err = os.MkdirAll(k.config.Dir, 0o700)
	if err == nil {
		err = durable.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: der}))
	}
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	return nil
}

// keepPrivate removes other users' access to the server's own key, like package pki for the other keys.
func keepPrivate(file string) error {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	return os.Chmod(file, 0o600)
}

// keyFiles holds the contents of the files.
type keyFiles struct {
	signingFile string
	signing     []byte
	names       []string // of keys for verifying
	proving     [][]byte
}

// read reads the files.
func (k *Keys) read() (*keyFiles, error) {
	f := &keyFiles{signingFile: k.config.SigningFile, names: k.config.KeyFiles}
	if f.signingFile == "" {
		f.signingFile = filepath.Join(k.config.Dir, OwnKeyFile)
		if err := keepPrivate(f.signingFile); err != nil {
			return nil, fmt.Errorf("service account key: %w", err)
		}
	}
	var err error
	if f.signing, err = os.ReadFile(f.signingFile); err != nil {
		return nil, fmt.Errorf("service account key: %w", err)
	}
	if len(f.names) == 0 {
		f.names, f.proving = []string{f.signingFile}, [][]byte{f.signing}
		return f, nil
	}
	for _, name := range f.names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("service account key: %w", err)
		}
		f.proving = append(f.proving, data)
	}
	return f, nil
}

// content joins all contents, to detect changes.
func (f *keyFiles) content() []byte {
	return bytes.Join(append([][]byte{f.signing}, f.proving...), nil)
}

// parse returns the keys in the files.
func (f *keyFiles) parse() (*keySet, error) {
	private, err := keyutil.ParsePrivateKeyPEM(f.signing)
	if err != nil {
		return nil, fmt.Errorf("service account key: %s: %w", f.signingFile, err)
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("service account key: %s holds a key that cannot sign", f.signingFile)
	}
	var believed []crypto.PublicKey
	for i, data := range f.proving {
		keys, err := publicKeys(data)
		if err != nil {
			return nil, fmt.Errorf("service account key: %s: %w", f.names[i], err)
		}
		believed = append(believed, keys...)
	}
	set, err := newKeySet(signer, believed, f.content())
	if err != nil {
		return nil, fmt.Errorf("service account key: %s: %w", f.signingFile, err)
	}
	return set, nil
}

// publicKeys returns the public halves of all keys of a PEM file.
func publicKeys(data []byte) ([]crypto.PublicKey, error) {
	var out []crypto.PublicKey
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		one := pem.EncodeToMemory(block)
		if private, err := keyutil.ParsePrivateKeyPEM(one); err == nil {
			if signer, ok := private.(crypto.Signer); ok {
				out = append(out, signer.Public())
			}
			continue
		}
		keys, err := keyutil.ParsePublicKeysPEM(one)
		if err != nil {
			if block.Type == "EC PARAMETERS" { // openssl writes them before a key
				continue
			}
			return nil, err
		}
		for _, key := range keys {
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("holds no PEM key")
	}
	return out, nil
}

func newKeySet(signer crypto.Signer, believed []crypto.PublicKey, content []byte) (*keySet, error) {
	set := &keySet{signer: signer, content: content}
	var err error
	if set.signing, err = newKey(signer.Public()); err != nil {
		return nil, err
	}
	for _, public := range believed {
		key, err := newKey(public)
		if err != nil {
			return nil, err
		}
		set.all = append(set.all, key)
	}
	return set, nil
}

// newKey derives a key's ID from the SHA-256 of its public half, as in Kubernetes, so that each server can verify the
// other's tokens.
func newKey(public crypto.PublicKey) (Key, error) {
	key := Key{Public: public}
	switch p := public.(type) {
	case *rsa.PublicKey:
		key.Algorithm = "RS256"
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			key.Algorithm = "ES256"
		case elliptic.P384():
			key.Algorithm = "ES384"
		case elliptic.P521():
			key.Algorithm = "ES512"
		default:
			return key, errors.New("unknown private key curve, must be 256, 384, or 521")
		}
	default:
		return key, fmt.Errorf("a key of type %T can neither sign nor verify tokens: use RSA or ECDSA", public)
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return key, err
	}
	digest := sha256.Sum256(der)
	key.ID = base64.RawURLEncoding.EncodeToString(digest[:])
	return key, nil
}

// refreshEvery is the interval at which Run checks for changed files.
const refreshEvery = 10 * time.Second

// Run reloads the files when they change, until ctx ends.
func (k *Keys) Run(ctx context.Context) {
	if k.external != nil {
		k.runExternal(ctx)
		return
	}
	if k.config.SigningFile == "" && k.config.Dir == "" {
		return
	}
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := k.Refresh(); err != nil {
				k.config.Log.Error("keys of service accounts are not usable; the previous keys stay in use", "error", err)
			}
		}
	}
}

// Refresh reads the files again. After an error the previous keys stay.
func (k *Keys) Refresh() error {
	files, err := k.read()
	if err != nil {
		return err
	}
	if bytes.Equal(files.content(), k.current.Load().content) {
		return nil
	}
	set, err := files.parse()
	if err != nil {
		return err
	}
	k.current.Store(set)
	k.config.Log.Info("keys of service accounts have changed", "signing", set.signing.ID, "believed", len(set.all))
	return nil
}

// Public returns the accepted keys, without unpublished ones.
func (k *Keys) Public() []Key {
	return slices.DeleteFunc(slices.Clone(k.current.Load().all), func(key Key) bool { return key.Unpublished })
}
