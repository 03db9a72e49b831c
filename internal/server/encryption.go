package server

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bowsprit/bowsprit/internal/api/convert"
	"github.com/bowsprit/bowsprit/internal/feature/replicas/identity"
	"github.com/bowsprit/bowsprit/internal/front"
	"github.com/bowsprit/bowsprit/internal/storage/encrypt"
)

// openEncryption reads the encryption configuration, if the server has one. kind finds the resource of the objects
// below a prefix. instead returns another prefix with a configuration that the objects below a prefix may share.
func (b *built) openEncryption(
	kind func(prefix string) (schema.GroupResource, bool), instead func(prefix string) string,
) error {
	b.host.Encrypts = func(prefix string) bool { return b.encryption != nil && b.encryption.Covers(prefix) }
	c := b.config.Encryption
	if c.ConfigFile == "" {
		return nil
	}
	e, err := encrypt.Open(encrypt.Config{
		File: c.ConfigFile, Reload: c.AutomaticReload, Server: identity.OfHost(), KMSv1: c.KMSv1, Kind: kind,
		Instead: instead, Path: b.host.Store.Path, Log: b.log,
	})
	if err != nil {
		return err
	}
	b.encryption = e
	b.libraries = append(b.libraries, encrypt.LibraryMetrics()...)
	b.onStop(func() error { e.Close(); return nil })
	return nil
}

// decrypt returns the function by which the view decrypts stored values. Without encryption it is encrypt.None, for
// which an encrypted value is not an object.
func (b *built) decrypt() func(prefix, key string, value []byte) ([]byte, error) {
	if b.encryption == nil {
		return encrypt.None
	}
	return b.encryption.Decrypt
}

// cipher returns the cipher for writes, or nil without encryption.
func (b *built) cipher() convert.Cipher {
	if b.encryption == nil {
		return nil
	}
	return b.encryption
}

// reloadEncryption follows the file. After a change the view reads again the objects that decrypt differently.
func (l *loaded) reloadEncryption(context.Context) error {
	if l.encryption == nil || !l.config.Encryption.AutomaticReload {
		return nil
	}
	l.background(func(ctx context.Context) error {
		l.encryption.Run(ctx, l.reread)
		return nil
	})
	return nil
}

// reread makes the view read the objects below the concerned prefixes again.
func (l *loaded) reread(ctx context.Context, concerned func(prefix string) bool) {
	for _, c := range l.host.View.Collections() {
		if !concerned(c.Prefix()) {
			continue
		}
		if err := c.Reread(ctx); err != nil && ctx.Err() == nil {
			l.log.Error("objects are not read again by the new encryption configuration; restart the server to be "+
				"sure that they can be", "collection", c.Prefix(), "error", err)
		}
	}
}

// encryptionChecks returns the health checks of KMS plugins. healthz and readyz include them, livez does not, since a
// restart repairs none.
func (b *built) encryptionChecks() []front.Check {
	if b.encryption == nil {
		return nil
	}
	var out []front.Check
	for _, c := range b.encryption.Checks() {
		out = append(out, front.Check{Name: c.Name, Run: c.Run, NotLive: true})
	}
	if b.config.Encryption.AutomaticReload { // a step of kube-apiserver's start, which its clients may wait for
		out = append(out, front.Check{
			Name: "poststarthook/start-encryption-provider-config-automatic-reload",
			Run:  func(context.Context) error { return nil },
		})
	}
	return out
}
