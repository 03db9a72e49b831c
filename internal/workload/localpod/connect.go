package localpod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/control"
	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/request"
	"github.com/bowsprit/bowsprit/internal/verb"
	"github.com/bowsprit/bowsprit/internal/workload/cluster"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// route is the connection of a program with the server.
type route struct {
	user      string
	workload  types.NamespacedName
	prefix    string // of the workload
	addresses []corev1.PodIP
	ports     map[int]bool
	end       func(reason string)

	// The lock of Pods guards them; they are set once.
	pod  *corev1.Pod
	link *callback.Link
}

// options parses the query into the pod that a client requests: the name of its container, and the ports.
func options(query url.Values) (any, error) {
	c := corev1.Container{Name: query.Get(callback.ContainerParameter)}
	if n := len(query[callback.PortParameter]); n > callback.MaxPorts {
		return nil, fmt.Errorf("%d ports are more than %d", n, callback.MaxPorts)
	}
	for _, text := range query[callback.PortParameter] {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%.20q is not a port: use a number from 1 to 65535", text)
		}
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: int32(n)})
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}, nil
}

// serve makes the client's program the pod of the call's workload, until its connection ends.
func (p *Pods) serve(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any) error {
	if r.ProtoMajor != 1 || r.Header.Get("Upgrade") != callback.Protocol {
		return apierrors.NewBadRequest(fmt.Sprintf("%s needs HTTP/1.1 and an upgrade to %s: use bowsprit run --as-pod",
			Subresource, callback.Protocol))
	}
	requested := options.(*corev1.Pod).Spec.Containers[0]
	workload, err := ownerOf(r.Context(), v, c)
	if err != nil {
		return err
	}
	pod, err := podOf(workload, requested.Name, p.server)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	own := &route{
		user: c.User.GetName(), workload: types.NamespacedName{Namespace: c.Namespace, Name: c.Name},
		prefix: c.Resource.Prefix, ports: map[int]bool{},
		end: func(reason string) { cancel(errors.New(reason)) },
	}
	for _, port := range requested.Ports {
		own.ports[int(port.ContainerPort)] = true
	}
	if err := p.claim(podKey(pod), own, p.storedAddresses(podKey(pod))); err != nil {
		return err
	}
	defer p.release(podKey(pod))
	caller := *p.cluster
	caller.User, caller.Manager = c.User, "bowsprit-run"
	if pod, err = p.create(ctx, &caller, pod); err != nil {
		return err
	}
	defer p.remove(context.WithoutCancel(ctx), pod)
	if a := request.RecordOf(r.Context()); a != nil {
		a.Annotate("bowsprit.dev/local-pod", podKey(pod).String())
	}
	link, err := callback.Upgrade(w, http.Header{callback.PodHeader: {pod.Name}, callback.UIDHeader: {string(pod.UID)}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	defer link.Close()
	p.open(podKey(pod), pod, link)
	p.cluster.Log.Info("a local program is the pod of a workload", "pod", podKey(pod), "user", own.user)
	err = p.follow(ctx, own)
	p.cluster.Log.Info("a local program is no pod any more", "pod", podKey(pod), "user", own.user, "reason", err)
	return nil // the connection has no response any more
}

// ownerOf reads the workload of the call.
func ownerOf(ctx context.Context, v *verb.Verbs, c *verb.Call) (*owner, error) {
	e, err := v.Current(ctx, c)
	if err != nil {
		return nil, err
	}
	obj, err := v.Read(ctx, c.Resource, c.Version, e)
	if err != nil {
		return nil, err
	}
	read := struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}{}
	if err := fromObject(obj, &read); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if read.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(c.GroupResource(), c.Name, errors.New("it is being deleted"))
	}
	return &owner{namespace: c.Namespace, template: read.Spec.Template, reference: metav1.OwnerReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: c.Resource.Kind, Name: read.Name, UID: read.UID,
	}}, nil
}

// claim reserves the route of a pod. Only one program can be the pod.
func (p *Pods) claim(pod types.NamespacedName, r *route, taken map[string]bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.routes[pod]; other != nil {
		return conflict(pod.Name, fmt.Errorf("a program of user %s is this pod already: end it first", other.user))
	}
	r.addresses = p.addressesLocked(pod, taken)
	p.routes[pod] = r
	return nil
}

func conflict(pod string, err error) error {
	return apierrors.NewConflict(podResource, pod, err)
}

var podResource = cluster.Pods.GroupVersionKind().GroupVersion().WithResource(ref.Pods.Resource).GroupResource()

func (p *Pods) release(pod types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.routes, pod)
}

// open makes connections to a route possible.
func (p *Pods) open(key types.NamespacedName, pod *corev1.Pod, link *callback.Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[key].pod, p.routes[key].link = pod, link
}

// create creates a pod in the name of the caller, in place of a leftover of the same name.
func (p *Pods) create(ctx context.Context, caller *cluster.Cluster, pod *corev1.Pod) (*corev1.Pod, error) {
	made, err := cluster.Pods.Create(ctx, caller, pod)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	old := cluster.Pods.Get(p.cluster, pod.Namespace, pod.Name)
	if old == nil || !p.Is(old) || old.Annotations[serverAnnotation] != p.server {
		return nil, conflict(pod.Name, errors.New("a pod of this name exists: delete it first"))
	}
	p.remove(ctx, old)
	return cluster.Pods.Create(ctx, caller, pod)
}

// removeTimeout bounds the deletion of a pod.
const removeTimeout = 10 * time.Second

// remove deletes a pod.
func (p *Pods) remove(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	now := int64(0)
	err := cluster.Pods.Delete(ctx, p.cluster, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if control.IgnoreNotFound(err) != nil {
		p.cluster.Log.Warn("a local pod cannot be deleted; retried every 10 seconds", "pod", podKey(pod), "error", err)
	}
}
