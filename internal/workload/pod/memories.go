package pod

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memories are the memories of pods that have any. Its zero value is ready.
type memories struct {
	mu   sync.Mutex
	pods map[types.UID]*memory // guarded by mu
}

// of returns the memory of a pod.
func (m *memories) of(uid types.UID) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.pods[uid]; known != nil {
		return known
	}
	return &memory{}
}

// keep keeps the memory of a pod, unless it is empty.
func (m *memories) keep(uid types.UID, of *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case of.empty():
		delete(m.pods, uid)
	case m.pods == nil:
		m.pods = map[types.UID]*memory{uid: of}
	default:
		m.pods[uid] = of
	}
}

// forget is called when a pod is gone.
func (m *memories) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
}
