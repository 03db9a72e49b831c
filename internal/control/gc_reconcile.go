package control

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownerState is what has become of an owner.
type ownerState int

const (
	solid    ownerState = iota // it is there
	dangling                   // it is not
	waiting                    // it is being deleted and waits for its dependents
)

// subject is an object as the garbage collector sees it.
type subject struct {
	deleting   bool
	finalizers []string
	owners     []owned
	dependents int // objects that name it as an owner
	blocking   int // those of them that hold up its deletion in the foreground
	// circular is true if one of its dependents waits for dependents of its own: it may wait for this very object.
	circular bool
	// unwatched is true if an owner is of a kind that another server has and that cannot be watched.
	unwatched bool
}

// again returns when to look again though nothing may have said that something has changed, nil if not at all.
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

// verdict is what to do with an object. The zero verdict is to let it be.
type verdict struct {
	// unlink lists owners that are to be removed from its references.
	unlink []string
	// unblock makes its references no longer block the deletion of its owners, before it is deleted.
	unblock bool
	// remove is the policy to delete it with; "" means not to delete it.
	remove metav1.DeletionPropagation
	// orphan removes it from the references of its dependents, and then the finalizer that asked for that.
	orphan bool
	// release removes the finalizer that waits for dependents: none holds it up any more.
	release bool
	// hurry looks at the dependents that hold it up.
	hurry bool
}

// decide is the garbage collector's rule: what no owner holds any more goes. It is kube's, case by case.
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
		// It stays. A waiting owner must not be kept waiting by what will not go.
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

// withoutOwners returns the references to other owners than those of uids.
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
