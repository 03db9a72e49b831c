package oraclebuiltins

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/noderestriction"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"

	"github.com/bowsprit/bowsprit/internal/admit"
	"github.com/bowsprit/bowsprit/internal/auth/authz"
	"github.com/bowsprit/bowsprit/internal/feature/plugins/plugin"
	"github.com/bowsprit/bowsprit/internal/kinds"
	"github.com/bowsprit/bowsprit/internal/object/codec"
	"github.com/bowsprit/bowsprit/internal/testing/plugintest"
)

// nodeWrite is a random write, mostly by a kubelet. now is nil for deletions, old for creations.
type nodeWrite struct {
	op          admission.Operation
	now, old    runtime.Object
	subresource string
}

// kubeletCluster makes random objects and writes of them.
type kubeletCluster struct {
	nodeCluster
	requests [][]byte // for certificates
}

func (c *kubeletCluster) one(in int) bool { return c.IntN(in) == 0 }

func (c *kubeletCluster) keys(of ...string) map[string]string {
	out := map[string]string{}
	for _, key := range of {
		if c.one(4) {
			out[key] = c.pick("a", "b")
		}
	}
	return out
}

func (c *kubeletCluster) labels() map[string]string {
	return c.keys("kubernetes.io/os", "kubernetes.io/x", "a.kubernetes.io/x", "k8s.io/x", "x", "example.com/x",
		"node-restriction.kubernetes.io/x", "a.node-restriction.kubernetes.io/x", "kubelet.kubernetes.io/x",
		"a.node.kubernetes.io/x", "beta.kubernetes.io/instance-type", "notkubernetes.io/x", "topology.kubernetes.io/zone")
}

func (c *kubeletCluster) owners() (out []metav1.OwnerReference) {
	for range max(0, c.IntN(9)-6) + 1 - c.IntN(8)/7 {
		o := metav1.OwnerReference{
			APIVersion: c.pick("v1", "v1", "v1", "v1", "v1", "v2"), Kind: c.pick("Node", "Node", "Node", "Node", "Pod"),
			Name: c.pick("node1", "node2"), UID: types.UID(c.pick("u1", "u1", "u2")), Controller: new(!c.one(8)),
		}
		if c.one(3) {
			o.BlockOwnerDeletion = new(c.one(3))
		}
		out = append(out, o)
	}
	return out
}

// randomPod returns a pod with a volume of any type, or none.
func (c *kubeletCluster) randomPod(name string) *corev1.Pod {
	in := nodeCluster{Rand: c.Rand, graph: node.NewGraph(), objects: map[string]any{}}
	in.addPod(name)
	var pod *corev1.Pod
	for _, o := range in.objects {
		pod = o.(*corev1.Pod)
	}
	pod.UID = types.UID(c.pick("u1", "u1", "u2"))
	pod.OwnerReferences = c.owners()
	if !c.one(6) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		pod.Spec.NodeName = c.pick("node1", "node1", "node2")
	}
	if !c.one(8) {
		pod.Spec.ServiceAccountName = ""
	}
	if c.one(2) {
		pod.Spec.ImagePullSecrets, pod.Spec.Containers, pod.Spec.InitContainers, pod.Spec.EphemeralContainers =
			nil, nil, nil, nil
	}
	if c.one(2) {
		pod.Spec.ResourceClaims = nil
	}
	for range c.IntN(3) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: c.pick("a", "b"), VolumeSource: c.anySource()})
	}
	if c.one(2) {
		pod.Spec.Volumes = pod.Spec.Volumes[1:]
	}
	return pod
}

// anySource is of the types that source leaves out.
func (c *kubeletCluster) anySource() corev1.VolumeSource {
	audience := func() corev1.VolumeProjection {
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: c.pick("", "a", "b", "c"),
		}}
	}
	return []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {HostPath: &corev1.HostPathVolumeSource{}},
		{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "a"}},
		{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: c.pick("vol-1", "aws:///x", "?")}},
		{AzureDisk: &corev1.AzureDiskVolumeSource{
			Kind: new(corev1.AzureDataDiskKind(c.pick("Managed", "Dedicated"))),
		}},
		{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}, {NFS: &corev1.NFSVolumeSource{}},
		{Glusterfs: &corev1.GlusterfsVolumeSource{}}, {DownwardAPI: &corev1.DownwardAPIVolumeSource{}},
		{CSI: &corev1.CSIVolumeSource{Driver: c.pick("d1", "d2", "gone")}}, {Image: &corev1.ImageVolumeSource{}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{audience(), audience()}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}},
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}},
		}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{DownwardAPI: &corev1.DownwardAPIProjection{}}, {},
		}}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{PodCertificate: &corev1.PodCertificateProjection{}},
		}}},
		{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}},
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.pick("a", "b", "gone")}},
		{PortworxVolume: &corev1.PortworxVolumeSource{}}, {Cinder: &corev1.CinderVolumeSource{VolumeID: "a"}},
	}[c.IntN(19)]
}

func (c *kubeletCluster) randomNode() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.pick("node1", "node1", "node1", "node2")}}
	n.Labels = c.labels()
	if c.one(8) {
		n.Spec.ConfigSource = &corev1.NodeConfigSource{ConfigMap: &corev1.ConfigMapNodeConfigSource{Name: c.name()}}
	}
	if c.one(8) {
		n.Spec.Taints = []corev1.Taint{{Key: c.pick("a", "b")}}
	}
	if c.one(8) {
		n.OwnerReferences = c.owners()
	}
	return n
}

func (c *kubeletCluster) randomClaim(name string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n1"}}
	claim.Spec.VolumeName = c.pick("v0", "v1", "v2", "v3", "gone")
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	return claim
}

// reported is a claim as a kubelet updates it.
func (c *kubeletCluster) reported(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := claim.DeepCopy()
	out.ResourceVersion = c.pick("", "1")
	size := corev1.ResourceList{"storage": resource.MustParse(c.pick("1Gi", "2Gi"))}
	out.Status.Capacity, out.Status.AllocatedResources = size, size
	out.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing}}
	if c.one(2) {
		return out
	}
	for _, change := range []func(){
		func() { out.Labels = c.labels() },
		func() { out.Spec.VolumeName = c.name() },
		func() { out.Spec.Resources.Limits = size },
		func() { out.Spec.Selector = &metav1.LabelSelector{MatchLabels: c.labels()} },
		func() { out.Spec.StorageClassName, out.Spec.VolumeAttributesClassName = new("a"), new("b") },
		func() { out.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		func() {
			out.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("g"), Kind: "k", Name: "n"}
		},
		func() {
			out.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "k", Name: "n", Namespace: new("s")}
		},
		func() { out.Status.Phase = corev1.ClaimBound },
		func() { out.Status.AccessModes = out.Spec.AccessModes },
		func() { out.Status.CurrentVolumeAttributesClassName = new("a") },
		func() {
			out.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{
				TargetVolumeAttributesClassName: "a", Status: corev1.PersistentVolumeClaimModifyVolumePending,
			}
		},
	} {
		if c.one(5) {
			change()
		}
	}
	return out
}

// write is a random one.
func (c *kubeletCluster) write() nodeWrite {
	created := func(obj runtime.Object, subresource string) nodeWrite {
		return nodeWrite{admission.Create, obj, nil, subresource}
	}
	some := func(now, old runtime.Object) nodeWrite {
		switch c.IntN(3) {
		case 0:
			return created(now, "")
		case 1:
			return nodeWrite{admission.Delete, nil, now, ""}
		}
		return nodeWrite{admission.Update, now, old, c.pick("", "status")}
	}
	named := metav1.ObjectMeta{Name: c.pick("node1", "node1", "node2")}
	switch c.IntN(12) {
	case 0, 1:
		return created(c.randomPod(fmt.Sprint("p", c.IntN(9))), "")
	case 2:
		pod := c.randomPod(fmt.Sprint("p", c.IntN(9)))
		return some(pod, pod)
	case 3:
		return c.podStatus()
	case 4:
		return created(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("p", c.IntN(9)), Namespace: c.namespace(),
		}}, "eviction")
	case 5:
		now := c.randomNode()
		old := c.randomNode()
		old.Name = now.Name
		if c.one(2) {
			old.Spec, old.OwnerReferences = now.Spec, now.OwnerReferences
		}
		return some(now, old)
	case 6:
		claim := c.randomClaim("a")
		if c.one(10) {
			return some(claim, claim)
		}
		return nodeWrite{admission.Update, c.reported(claim), claim, "status"}
	case 7, 8:
		return created(c.tokenRequest(), "token")
	case 9:
		named.Namespace = c.pick("kube-node-lease", "kube-node-lease", "n1")
		lease := &coordinationv1.Lease{ObjectMeta: named}
		return some(lease, lease)
	case 10:
		if c.one(2) {
			own := &storagev1.CSINode{ObjectMeta: named}
			return some(own, own)
		}
		slice := &resourcev1.ResourceSlice{ObjectMeta: named}
		if node := c.node(); node != "" {
			slice.Spec.NodeName = &node
		}
		return some(slice, slice)
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: named}
	csr.Spec.SignerName = c.pick(certificatesv1.KubeletServingSignerName,
		certificatesv1.KubeAPIServerClientKubeletSignerName, "example.com/a")
	csr.Spec.Request = c.requests[c.IntN(len(c.requests))]
	return some(csr, csr)
}

func (c *kubeletCluster) podStatus() nodeWrite {
	old := c.randomPod("p0")
	now := old.DeepCopy()
	if c.one(6) {
		now.Labels = c.labels()
	}
	if c.one(4) {
		other := c.randomPod("p0")
		now.Status.ResourceClaimStatuses = other.Status.ResourceClaimStatuses
		now.Status.ExtendedResourceClaimStatus = other.Status.ExtendedResourceClaimStatus
	}
	return nodeWrite{admission.Update, now, old, c.pick("status", "status", "status", "resize")}
}

func (c *kubeletCluster) tokenRequest() *authenticationv1.TokenRequest {
	tr := &authenticationv1.TokenRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: c.namespace()}}
	for range min(1, c.IntN(3)) + c.IntN(12)/11 {
		tr.Spec.Audiences = append(tr.Spec.Audiences, c.pick("a", "b", "c", "d"))
	}
	if !c.one(20) {
		tr.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: fmt.Sprint("p", c.IntN(9)), UID: "u1",
		}
		if c.one(10) {
			tr.Spec.BoundObjectRef.UID = ""
		}
	}
	return tr
}

func (c *kubeletCluster) user() *user.DefaultInfo {
	u := &user.DefaultInfo{Name: "system:node:node1", Groups: []string{"system:nodes"}}
	switch c.IntN(25) {
	case 0:
		u.Name = "system:node:" + c.node()
	case 1:
		u.Groups = nil
	case 2:
		u.Groups = append(u.Groups, user.SystemPrivilegedGroup)
	}
	return u
}

// fillCluster returns the stored objects.
func (c *kubeletCluster) fillCluster() (all []runtime.Object) {
	all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", UID: "u1"}})
	for i := range 8 {
		all = append(all, c.randomPod(fmt.Sprint("p", i)))
	}
	all = append(all, c.randomClaim("a"), c.randomClaim("b"), c.randomClaim("p1-a"), c.randomClaim("p2-b"))
	for i, source := range []corev1.PersistentVolumeSource{
		{CSI: &corev1.CSIPersistentVolumeSource{Driver: c.pick("d1", "d2", "gone")}}, {NFS: &corev1.NFSVolumeSource{}},
		{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: c.pick("vol-1", "?")}},
		{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "a"}},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("v", i)}}
		pv.Spec.PersistentVolumeSource = source
		all = append(all, pv)
	}
	for _, name := range []string{"d1", "d2", "ebs.csi.aws.com", "cinder.csi.openstack.org"} {
		d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: c.pick("a", "b")}, {Audience: c.pick("c", "d", "")}}
		all = append(all, d)
	}
	return all
}

// withKind returns the JSON of an object.
func withKind(t *testing.T, obj runtime.Object) json.RawMessage {
	t.Helper()
	gvks, _, err := legacyscheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvks[0])
	return marshal(t, obj)
}

func signingRequests(t *testing.T) (all [][]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"system:node:node1", "system:node:node1", "system:node:node2", "node1"} {
		der, err := x509.CreateCertificateRequest(cryptorand.Reader,
			&x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	}
	return append(all, []byte("x"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")}))
}

// TestNodeRestriction compares both decisions about random writes in random clusters. CHECKS is the number of writes,
// 4,000 if unset.
func TestNodeRestriction(t *testing.T) {
	registry := admission.NewPlugins()
	noderestriction.Register(registry)
	clusters, requests := 4, signingRequests(t)
	if n, err := strconv.Atoi(os.Getenv("CHECKS")); err == nil {
		clusters = n/1000 + 1
	}
	admitted, refusals := map[string]int{}, map[string]bool{}
	for seed := range clusters {
		c := &kubeletCluster{nodeCluster{Rand: rand.New(rand.NewPCG(uint64(seed), 36))}, requests}
		var stored []json.RawMessage
		for _, obj := range c.fillCluster() {
			stored = append(stored, withKind(t, obj))
		}
		theirs := startPlugin(t, registry, noderestriction.PluginName, nil, stored)
		_, view := plugintest.Open(t, stored)
		ours := plugintest.Find(t, noderestriction.PluginName, plugin.Config{View: view, Authz: authz.Union{}})
		for range 1000 {
			w, u := c.write(), c.user()
			errs := map[string]string{"theirs": "", "ours": ""}
			kind, err := w.callTheirs(t, theirs, u)
			if err != nil {
				errs["theirs"] = err.Error()
			}
			if err := w.callOurs(t, ours, u); err != nil {
				errs["ours"] = err.Error()
			}
			if errs["ours"] != errs["theirs"] {
				t.Fatalf("seed %d: %s %s %s by %v\nnow %s\nold %s\nours   %s\ntheirs %s", seed, w.op, kind, w.subresource, u,
					marshal(t, w.now), marshal(t, w.old), errs["ours"], errs["theirs"])
			}
			if refusals[errs["ours"]] = true; err == nil {
				admitted[kind+"/"+w.subresource]++
			}
		}
	}
	for _, kind := range []string{"Pod/", "Pod/status", "Eviction/eviction", "Node/", "PersistentVolumeClaim/status",
		"TokenRequest/token", "Lease/", "CSINode/", "ResourceSlice/", "CertificateSigningRequest/"} {
		if admitted[kind] < 5 {
			t.Errorf("%s: admitted %d times only: the writes are wrong", kind, admitted[kind])
		}
	}
	if len(refusals) < 100 {
		t.Errorf("%d different refusals only: the writes are wrong", len(refusals))
	}
}

func (w nodeWrite) callTheirs(t *testing.T, p admission.Interface, u user.Info) (kind string, err error) {
	t.Helper()
	var now, old runtime.Object
	named := w.now
	if named == nil {
		named = w.old
	}
	_, gvk := hub(t, withKind(t, named))
	if w.now != nil {
		now, _ = hub(t, withKind(t, w.now))
	}
	if w.old != nil {
		old, _ = hub(t, withKind(t, w.old))
	}
	return gvk.Kind, admitWith(t.Context(), t, p, now, old, gvk, w.subresource, w.op, u)
}

// nodeRestricted are made once, because a test uses a kind at each write.
var nodeRestricted = kinds.Resources()

func (w nodeWrite) callOurs(t *testing.T, p admit.Mutator, u user.Info) error {
	t.Helper()
	decoded := func(obj runtime.Object) admit.Object {
		if obj == nil {
			return nil
		}
		v, err := codec.DecodeJSON(withKind(t, obj))
		if err != nil {
			t.Fatal(err)
		}
		return v.(admit.Object)
	}
	a := &admit.Attributes{
		Operation: admit.Operation(w.op),
		Target:    admit.Target{Subresource: w.subresource}, Request: admit.Request{User: u},
		Object: decoded(w.now), Old: decoded(w.old),
	}
	named := w.now
	if named == nil {
		named = w.old
	}
	gvr := resourceOf(t, named.GetObjectKind().GroupVersionKind())
	for _, r := range nodeRestricted {
		if r.Group == gvr.Group && r.Plural == gvr.Resource {
			a.Resource = r
		}
	}
	m := named.(metav1.Object)
	a.Namespace, a.Name = m.GetNamespace(), m.GetName()
	return p.Mutate(t.Context(), a)
}
