// Package cluster is what simulated components of a cluster (controllers, the scheduler, nodes) see of it and how they
// act on it: typed objects from the view, writes through the verbs in process, events, and a clock.
//
// A component is a control.Reconciler that is made of a Cluster. What it reads is decoded from the view when it is
// needed, so nothing is held twice; what it writes goes through admission as a write of the user of its name. Its
// Reconcile is called when the view shows all that this process has written (Loop), so it sees its own writes and needs
// no record of what it has asked for.
//
// A Cluster is safe for concurrent use.
package cluster

import (
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/part"
)

// Cluster is a server, seen by one of the components that it simulates.
type Cluster struct {
	*part.Host
	// User is who the component is, Manager is the field manager of its writes, and Component names it in events.
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

// Kwok returns the cluster as kwok sees it, for what is done by Stages.
func Kwok(h *part.Host) *Cluster {
	return &Cluster{
		Host: h, User: control.ControllerUser("kwok-controller"), Manager: "kwok", Component: "kwok_controller",
		events: newRecorder(h),
	}
}

// Kubelets returns the cluster for what acts as the kubelets of many nodes, each by Kubelet.
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
