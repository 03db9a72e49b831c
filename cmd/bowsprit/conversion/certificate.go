package conversion

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// certificate is the certificate in tls.crt and tls.key of a directory. It is safe for concurrent use.
type certificate struct {
	dir string
	mu  struct {
		sync.Mutex
		pair    *tls.Certificate
		changed time.Time // the later modification of the files of pair
	}
}

// current returns the certificate for a handshake. It reads changed files again, and keeps the former certificate while
// they are not a pair.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, key := filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key")
	changed, err := lastChange(cert, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pair != nil && (err != nil || changed.Equal(c.mu.changed)) {
		return c.mu.pair, nil
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	switch {
	case err == nil:
		c.mu.pair, c.mu.changed = &pair, changed
	case c.mu.pair == nil:
		return nil, err
	}
	return c.mu.pair, nil
}

// lastChange returns the latest modification of files.
func lastChange(files ...string) (latest time.Time, err error) {
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return latest, err
		}
		if info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest, nil
}
