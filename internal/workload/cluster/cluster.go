// Package cluster is the client library of the simulated cluster components (controllers, the scheduler, nodes): typed
// objects from the view, writes through the verbs in process, events, and a clock.
//
// A component is a control.Reconciler built on a Cluster. It decodes objects from the view on demand, so nothing is
// stored twice. Its writes pass admission as writes of the component's own user. Loop calls Reconcile only when the
// view shows all writes of this process, so a reconciler sees its own writes and needs no expectations.
//
// A Cluster is safe for concurrent use.
package cluster

import (
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Cluster is a server, as seen by one simulated component.
type Cluster struct {
	*part.Host
	// User is the user of the component, Manager is the field manager of its writes, and Component is its name in
	// events.
	User               user.Info
	Manager, Component string

	events *recorder
}

// Controller returns the cluster as a controller of kube-controller-manager sees it. name is that in its flag
// --controllers ("deployment-controller"), and of its service account.
func Controller(h *part.Host, name string) *Cluster {
	return &Cluster{
		Host: h, User: control.ControllerUser(name), Manager: "kube-controller-manager", Component: name,
		events: newRecorder(h),
	}
}

// Scheduler returns the cluster as kube-scheduler sees it.
func Scheduler(h *part.Host) *Cluster {
	return &Cluster{
		Host: h, User: &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}},
		Manager: "kube-scheduler", Component: "default-scheduler", events: newRecorder(h),
	}
}

// Kwok returns the cluster as kwok sees it, for the actions of Stages.
func Kwok(h *part.Host) *Cluster {
	return &Cluster{
		Host: h, User: control.ControllerUser("kwok-controller"), Manager: "kwok", Component: "kwok_controller",
		events: newRecorder(h),
	}
}

// Kubelets returns the cluster for a component that acts as the kubelets of many nodes, each by Kubelet.
func Kubelets(h *part.Host) *Cluster { return &Cluster{Host: h, events: newRecorder(h)} }

// Kubelet returns the cluster as the kubelet of a node sees it.
func (c *Cluster) Kubelet(name string) *Cluster {
	own := *c
	own.User = &user.DefaultInfo{
		Name: "system:node:" + name, Groups: []string{user.NodesGroup, user.AllAuthenticated},
	}
	own.Manager, own.Component = "kubelet", "kubelet"
	return &own
}

// Since returns how long ago a time is by the cluster's clock.
func (c *Cluster) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
