// Command dra is two drivers of dynamic resources for the tests, of GPUs with their slices and of CPUs. Its devices are
// names, and a container that gets one has a variable for it. What they must never do they refuse: prepare one device
// for two claims at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"
)

const kubelet = "/var/lib/kubelet"

// driver knows which claim holds a device: one file per device, with the claim's UID, outlives a restart.
type driver struct {
	name     string
	node     string
	things   []thing
	prepared string
}

func main() {
	config := flag.String("kubeconfig", "", "as which client the API server is asked")
	node := flag.String("node", "", "the node that has the devices")
	whole := flag.Int("gpus", 4, "how many whole GPUs")
	slices := flag.String("slices", "", "the profiles of the slices of one more GPU")
	cores := flag.Int("cpus", 0, "how many CPUs")
	cdi := flag.String("cdi", "/run/cdi", "where the container runtime looks for devices")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	drivers := []*driver{
		{name: gpuDriver, node: *node, things: gpus(*node, *whole, words(*slices))},
		{name: cpuDriver, node: *node, things: cpus(*node, *cores)},
	}
	if err := run(ctx, *config, *cdi, drivers); err != nil {
		klog.ErrorS(err, "the drivers end")
		os.Exit(1)
	}
}

func run(ctx context.Context, config, cdi string, drivers []*driver) error {
	rest, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	failures := make(chan error, len(drivers))
	for _, one := range drivers {
		// One after the other they would keep the cluster waiting.
		go func() { failures <- one.serve(ctx, client, cdi) }()
	}
	return <-failures
}

func (d *driver) serve(ctx context.Context, client kubernetes.Interface, cdi string) error {
	data := filepath.Join(kubelet, "plugins", d.name)
	d.prepared = filepath.Join(data, "prepared")
	if err := errors.Join(os.MkdirAll(d.prepared, 0o750), os.MkdirAll(cdi, 0o755), d.writeCDI(cdi)); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d,
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(d.node),
		kubeletplugin.DriverName(d.name),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(kubelet, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, d.resources()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// resources are one pool with the node's name.
func (d *driver) resources() resourceslice.DriverResources {
	var devices []resourceapi.Device
	for _, one := range d.things {
		devices = append(devices, resourceapi.Device{Name: one.name, Attributes: one.attributes})
	}
	slices := []resourceslice.Slice{{Devices: devices}}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: {Slices: slices}}}
}

func (d *driver) cdiKind() string { return "local-cluster/" + d.name }

// writeCDI says once for all what a container with a device gets.
func (d *driver) writeCDI(folder string) error {
	type edits struct {
		Env []string `json:"env"`
	}
	type device struct {
		Name  string `json:"name"`
		Edits edits  `json:"containerEdits"`
	}
	var devices []device
	for _, one := range d.things {
		devices = append(devices, device{Name: one.name, Edits: edits{Env: []string{one.variable}}})
	}
	if len(devices) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": d.cdiKind(), "devices": devices})
	if err != nil {
		return err
	}
	fresh := filepath.Join(folder, d.name+".new")
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(folder, d.name+".json"))
}

// PrepareResourceClaims lets containers have what was allocated; asked again, it answers the same.
func (d *driver) PrepareResourceClaims(
	_ context.Context, claims []*resourceapi.ResourceClaim,
) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("claim %s/%s is not allocated", claim.Namespace, claim.Name)
	}
	var devices []kubeletplugin.Device
	for _, given := range claim.Status.Allocation.Devices.Results {
		if given.Driver != d.name || given.Pool != d.node {
			continue
		}
		if err := d.hold(given, claim.UID); err != nil {
			return nil, err
		}
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{given.Request},
			PoolName:     given.Pool,
			DeviceName:   given.Device,
			CDIDeviceIDs: []string{d.cdiKind() + "=" + given.Device},
		})
	}
	klog.InfoS("prepared", "claim", klog.KObj(claim), "uid", claim.UID, "devices", len(devices))
	return devices, nil
}

// hold notes a device as the claim's. With admin access it is looked at only, and held by no claim.
func (d *driver) hold(given resourceapi.DeviceRequestAllocationResult, claim types.UID) error {
	if given.AdminAccess != nil && *given.AdminAccess {
		return nil
	}
	for _, one := range d.things {
		if given.Device == one.name {
			return d.note(one.name, claim)
		}
	}
	return fmt.Errorf("there is no device %q", given.Device)
}

func (d *driver) note(device string, claim types.UID) error {
	file := filepath.Join(d.prepared, device)
	holder, err := os.ReadFile(file)
	if err == nil && len(holder) > 0 && types.UID(holder) != claim {
		return fmt.Errorf("%s is prepared for claim %s", device, holder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(claim), 0o640)
}

// UnprepareResourceClaims gives back what a claim held; nothing to give back is no error.
func (d *driver) UnprepareResourceClaims(
	_ context.Context, claims []kubeletplugin.NamespacedObject,
) (map[types.UID]error, error) {
	results := make(map[types.UID]error)
	for _, claim := range claims {
		results[claim.UID] = d.release(claim.UID)
		klog.InfoS("unprepared", "claim", claim.NamespacedName, "uid", claim.UID)
	}
	return results, nil
}

func (d *driver) release(claim types.UID) error {
	var failures []error
	for _, one := range d.things {
		file := filepath.Join(d.prepared, one.name)
		if holder, err := os.ReadFile(file); err == nil && types.UID(holder) == claim {
			failures = append(failures, os.Remove(file))
		}
	}
	return errors.Join(failures...)
}

// HandleError is told of what fails in the background; publishing is tried again by the helper.
func (d *driver) HandleError(_ context.Context, err error, message string) {
	klog.ErrorS(err, message)
}
