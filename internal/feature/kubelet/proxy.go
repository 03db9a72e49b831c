package kubelet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/bowsprit/bowsprit/internal/kinds/ref"
	"github.com/bowsprit/bowsprit/internal/net/egress"
	"github.com/bowsprit/bowsprit/internal/net/forward"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/verb"
)

// upgrader returns the proxy to one address. It uses a connection of its own for each upgraded request. only rejects
// requests without an upgrade.
func (y *connector) upgrader(where *url.URL, over *http.Transport, only bool) *proxy.UpgradeAwareHandler {
	h := proxy.NewUpgradeAwareHandler(where, clean{over}, !only, only, responder{})
	h.MaxBytesPerSec = y.settings.BytesPerSecond
	return h
}

// responder answers requests that could not be forwarded.
type responder struct{}

// Error implements proxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, r *http.Request, err error) {
	codec.WriteError(w, r, err)
}

// pass hands a request of a proxy on, with the path below its own.
func (y *connector) pass(w http.ResponseWriter, r *http.Request, where *url.URL, over *http.Transport, path string) {
	where.Path = utilnet.JoinPreservingTrailingSlash(where.Path, path)
	if httpstream.IsUpgradeRequest(r) {
		r = alone(r)
	}
	forward.Lend(y.upgrader(where, over, false), w, r)
}

// servePodProxy passes a request on to a port of a pod.
func (y *connector) servePodProxy(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any,
) error {
	c, scheme, port, err := named(c)
	if err != nil {
		return err
	}
	pod, err := y.pod(r, v, c)
	if err != nil {
		return err
	}
	if port == "" {
		port = firstPort(pod)
	}
	ip := pod.Status.PodIP
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	if address := net.ParseIP(ip); address == nil || !address.IsGlobalUnicast() {
		return apierrors.NewBadRequest(errAddress.Error())
	}
	where := &url.URL{Scheme: scheme, Host: net.JoinHostPort(ip, port)}
	if port == "" {
		where.Host = where.Host[:len(where.Host)-1] // the brackets of an IPv6 address stay
	}
	y.pass(w, r, where, y.direct, options.(*corev1.PodProxyOptions).Path)
	return nil
}

// firstPort returns the first port of the pod's containers, or "" if there is none.
func firstPort(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if len(c.Ports) > 0 {
			return strconv.Itoa(int(c.Ports[0].ContainerPort))
		}
	}
	return ""
}

// serveNodeProxy forwards a request to the kubelet of a node, or to another port of the node.
func (y *connector) serveNodeProxy(
	w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any,
) error {
	c, scheme, port, err := named(c)
	if err != nil {
		return err
	}
	node, err := y.node(r.Context(), v, c, c.Name)
	if err != nil {
		return err
	}
	if err := proxyable(r.Context(), node.host); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	where, over := &url.URL{Scheme: "https", Host: node.address()}, y.verified
	if port != "" && port != node.port {
		where, over = &url.URL{Scheme: scheme, Host: net.JoinHostPort(node.host, port)}, y.direct
	}
	y.pass(w, r, where, over, options.(*corev1.NodeProxyOptions).Path)
	return nil
}

// proxyable returns an error if a host has an address that only the server itself should reach.
func proxyable(ctx context.Context, host string) error {
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return err
	}
	if len(addresses) == 0 {
		return errors.New("no addresses for hostname")
	}
	for _, a := range addresses {
		if !a.IP.IsGlobalUnicast() {
			return errAddress
		}
	}
	return nil
}

// serveServiceProxy passes a request on to a pod behind a service.
func (y *connector) serveServiceProxy(w http.ResponseWriter, r *http.Request, v *verb.Verbs, c *verb.Call, options any,
) error {
	name := c.Name
	c, scheme, port, err := named(c)
	if err != nil {
		return err
	}
	if number, notNumber := strconv.ParseInt(port, 10, 64); notNumber == nil {
		if port, err = portName(r.Context(), v, c, number); err != nil {
			return err
		}
	}
	address, err := y.behind(r.Context(), v, c, port, name)
	if err != nil {
		return err
	}
	where := &url.URL{Scheme: scheme, Host: address}
	y.pass(w, r, where, y.direct, options.(*corev1.ServiceProxyOptions).Path)
	return nil
}

// portName returns the name of a port of the call's service.
func portName(ctx context.Context, v *verb.Verbs, c *verb.Call, number int64) (string, error) {
	e, err := v.Current(ctx, c)
	if err != nil {
		return "", err
	}
	service := &corev1.Service{}
	if err := decode(e, service); err != nil {
		return "", err
	}
	for _, port := range service.Spec.Ports {
		if int64(port.Port) == number {
			return port.Name, nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", number, c.Name))
}

// behind returns the address of a random ready pod of the call's service, local programs before others. Only addresses
// of pods count: a user with access to Endpoints must not reach other hosts through the server.
func (y *connector) behind(ctx context.Context, v *verb.Verbs, c *verb.Call, port, portName string) (string, error) {
	e, err := current(ctx, v, ref.Endpoints.Prefix, c.Namespace, c.Name)
	if err != nil {
		return "", err
	}
	if e == nil {
		return "", apierrors.NewNotFound(c.GroupResource(), c.Name)
	}
	//lint:ignore SA1019 Kubernetes' proxy goes by Endpoints
	endpoints := &corev1.Endpoints{}
	if err := decode(e, endpoints); err != nil {
		return "", err
	}
	if len(endpoints.Subsets) == 0 {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", c.Name))
	}
	pods := v.View().Collection(ref.Pods.Prefix).Snapshot()
	var found []string
	for _, subset := range endpoints.Subsets {
		i := slices.IndexFunc(subset.Ports, func(p corev1.EndpointPort) bool { return p.Name == port })
		if i < 0 {
			continue
		}
		for _, a := range subset.Addresses {
			if a.TargetRef == nil || a.TargetRef.Namespace != c.Namespace {
				continue
			}
			pod := &corev1.Pod{}
			e := pods.Get(c.Namespace, a.TargetRef.Name)
			if e == nil || decode(e, pod) != nil ||
				!slices.ContainsFunc(pod.Status.PodIPs, func(ip corev1.PodIP) bool { return ip.IP == a.IP }) {
				continue
			}
			found = append(found, net.JoinHostPort(a.IP, strconv.Itoa(int(subset.Ports[i].Port))))
		}
	}
	if len(found) == 0 {
		return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", portName))
	}
	found = egress.PreferPrograms(found)
	return found[rand.IntN(len(found))], nil
}
