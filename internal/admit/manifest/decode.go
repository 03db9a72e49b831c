package manifest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// decoder decodes documents. Unknown and duplicate fields are errors. It knows all versions of the group, because the
// error for another version names the document's type.
var decoder = sync.OnceValue(func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(admissionregistrationv1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1beta1.AddToScheme(scheme))
	utilruntime.Must(admissionregistrationv1alpha1.AddToScheme(scheme))
	scheme.AddUnversionedTypes(metav1.SchemeGroupVersion, &metav1.List{}, &metav1.Status{})
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
})

// maxError is the maximum length of a decoder's error, which may quote the whole document.
const maxError = 2048

func decode(text []byte) (runtime.Object, error) {
	obj, _, err := decoder().Decode(text, nil, nil)
	switch {
	case err == nil:
		return obj, nil
	case runtime.IsNotRegisteredError(err):
		text, _, _ := strings.Cut(err.Error(), " in scheme ") // a line of the library's source
		return nil, errors.New(text)
	case len(err.Error()) > maxError:
		return nil, errors.New(strings.ToValidUTF8(err.Error()[:maxError], "") + "…")
	}
	return nil, err
}

// decodeAll passes the objects of each document to add. The objects of a v1.List count as objects of the document. add
// returns false for an object of a type that does not belong into the folder.
func decodeAll(documents []document, add func(obj runtime.Object, file string) (bool, error)) error {
	for _, d := range documents {
		obj, err := decode(d.text)
		if err == nil {
			err = addObject(obj, d.file, add)
		}
		if err != nil {
			return fmt.Errorf("error loading %s: %w", d.file, err)
		}
	}
	return nil
}

func addObject(obj runtime.Object, file string, add func(obj runtime.Object, file string) (bool, error)) error {
	list, ok := obj.(*metav1.List)
	if !ok {
		known, err := add(obj, file)
		if err == nil && !known {
			err = fmt.Errorf("unsupported resource type %T", obj)
		}
		return err
	}
	for _, item := range list.Items {
		obj, err := decode(item.Raw)
		if err != nil {
			return fmt.Errorf("failed to decode list item: %w", err)
		}
		if err := addObject(obj, file, add); err != nil {
			return err
		}
	}
	return nil
}
