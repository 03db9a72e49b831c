package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Create writes a key that must not exist, and returns the revision that it has now. ErrExists if it does.
//
// value is not kept.
func (s *Store) Create(ctx context.Context, key string, value []byte) (rev int64, err error) {
	k := s.prefix + key
	ok, rev, _, err := s.swap(ctx, k, 0, clientv3.OpPut(k, string(value)), nil)
	if err == nil && !ok {
		err = ErrExists
	}
	return rev, wrap("create", key, err)
}

// Update replaces the value of a key whose mod revision must still be rev. ErrConflict if it is another one,
// ErrNotFound if the key is gone.
func (s *Store) Update(ctx context.Context, key string, value []byte, rev int64) (newRev int64, err error) {
	k := s.prefix + key
	return s.change(ctx, "update", key, rev, clientv3.OpPut(k, string(value)))
}

// Delete removes a key whose mod revision must still be rev, and returns the revision of the deletion. ErrConflict if
// it is another one, ErrNotFound if the key is gone.
func (s *Store) Delete(ctx context.Context, key string, rev int64) (newRev int64, err error) {
	return s.change(ctx, "delete", key, rev, clientv3.OpDelete(s.prefix+key))
}

func (s *Store) change(ctx context.Context, verb, key string, rev int64, op clientv3.Op) (int64, error) {
	if rev <= 0 {
		return 0, fmt.Errorf("%s %s: revision %d: a change needs the revision that it replaces", verb, key, rev)
	}
	k := s.prefix + key
	exists := clientv3.OpGet(k, clientv3.WithKeysOnly())
	ok, newRev, found, err := s.swap(ctx, k, rev, op, &exists)
	switch {
	case err != nil || ok:
	case found:
		err = ErrConflict
	default:
		err = ErrNotFound
	}
	return newRev, wrap(verb, key, err)
}

// swap does op if key's mod revision is rev (0: the key does not exist), in one transaction. If it is not, nothing
// happens but look (if not nil), and found tells whether that read found the key.
func (s *Store) swap(ctx context.Context, key string, rev int64, op clientv3.Op, look *clientv3.Op) (ok bool, newRev int64, found bool, err error) {
	select {
	case <-s.done:
		return false, 0, false, ErrClosed
	case <-s.backend.failed():
		return false, 0, false, s.backend.failure()
	default:
	}
	if err := ctx.Err(); err != nil {
		return false, 0, false, err // nothing was sent, so nothing is uncertain
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	txn := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", rev)).Then(op)
	if look != nil {
		txn = txn.Else(*look)
	}
	resp, err := txn.Commit()
	if err != nil {
		return false, 0, false, writeError(err)
	}
	if !resp.Succeeded {
		return false, 0, look != nil && len(resp.Responses[0].GetResponseRange().GetKvs()) > 0, nil
	}
	return true, resp.Header.Revision, false, nil
}

func wrap(verb, key string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, key, err)
}
