package control

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownerState is the state of an owner.
type ownerState int

const (
	solid    ownerState = iota // it exists
	dangling                   // it does not exist
	waiting                    // it is being deleted and waits for its dependents
)

// subject is an object with the facts that the garbage collector needs.
type subject struct {
	deleting   bool
	finalizers []string
	owners     []owned
	dependents int // number of objects that refer to it as an owner
	blocking   int // number of them that delay its deletion in the foreground
	// circular is true if one of its dependents waits for its own dependents: it may wait for this very object.
	circular bool
	// unwatched is true if an owner's kind belongs to another server and cannot be watched.
	unwatched bool
}

// again returns when to check again without a change event, nil for never.
func (s subject) again() error {
	if s.unwatched {
		return Again(unwatchedAgain)
	}
	return nil
}

// owned is one reference to an owner.
type owned struct {
	uid   string
	state ownerState
}

// verdict is the decision about an object. The zero verdict is to leave it alone.
type verdict struct {
	// unlink lists owners to remove from its references.
	unlink []string
	// unblock makes its references no longer block the deletion of its owners, before it is deleted.
	unblock bool
	// remove is the policy for deleting it; "" means not to delete it.
	remove metav1.DeletionPropagation
	// orphan removes it from the references of its dependents, and then the finalizer that requested this.
	orphan bool
	// release removes the finalizer that waits for dependents, because none blocks any longer.
	release bool
	// hurry checks the dependents that block it.
	hurry bool
}

// decide is the garbage collector's rule: an object without remaining owners is deleted. It matches Kubernetes case by
// case.
func decide(s subject) verdict {
	has := func(finalizer string) bool { return slices.Contains(s.finalizers, finalizer) }
	if s.deleting {
		switch {
		case has(metav1.FinalizerOrphanDependents):
			return verdict{orphan: true}
		case has(metav1.FinalizerDeleteDependents) && s.blocking == 0:
			return verdict{release: true}
		case has(metav1.FinalizerDeleteDependents):
			return verdict{hurry: true}
		}
		return verdict{}
	}
	var by [3][]string
	for _, o := range s.owners {
		by[o.state] = append(by[o.state], o.uid)
	}
	switch {
	case len(s.owners) == 0:
		return verdict{}
	case len(by[solid]) > 0:
		// It stays, so a waiting owner must not wait for it.
		return verdict{unlink: append(by[dangling], by[waiting]...)}
	case len(by[waiting]) > 0 && s.dependents > 0:
		return verdict{unblock: s.circular, remove: metav1.DeletePropagationForeground}
	case has(metav1.FinalizerOrphanDependents):
		return verdict{remove: metav1.DeletePropagationOrphan}
	case has(metav1.FinalizerDeleteDependents):
		return verdict{remove: metav1.DeletePropagationForeground}
	}
	return verdict{remove: metav1.DeletePropagationBackground}
}

// withoutOwners returns the references without the owners in uids.
func withoutOwners(refs []any, uids []string) []any {
	return slices.DeleteFunc(slices.Clone(refs), func(r any) bool {
		ref, _ := r.(map[string]any)
		uid, _ := ref["uid"].(string)
		return slices.Contains(uids, uid)
	})
}

// withoutBlocking returns the references with none that blocks its owner's deletion.
func withoutBlocking(refs []any) []any {
	out := slices.Clone(refs)
	for i, r := range out {
		ref, _ := r.(map[string]any)
		if ref["blockOwnerDeletion"] != true {
			continue
		}
		free := map[string]any{}
		for key, v := range ref {
			free[key] = v
		}
		free["blockOwnerDeletion"] = false
		out[i] = free
	}
	return out
}
