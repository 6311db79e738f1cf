// Command dra is a driver of dynamic resources for the tests: its GPUs are names, and a container that gets one has a
// variable for it. What it must never do it refuses: prepare one device for two claims at once.
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

const (
	driverName = "gpu.local-cluster"
	cdiKind    = "local-cluster/gpu"
	model      = "pretended"
	kubelet    = "/var/lib/kubelet"
)

// driver knows which claim holds a device: one file per device, with the claim's UID, outlives a restart.
type driver struct {
	node     string
	gpus     int
	prepared string
}

func main() {
	config := flag.String("kubeconfig", "", "as which client the API server is asked")
	node := flag.String("node", "", "the node that has the GPUs")
	gpus := flag.Int("gpus", 4, "how many")
	cdi := flag.String("cdi", "/run/cdi", "where the container runtime looks for devices")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *config, *node, *gpus, *cdi); err != nil {
		klog.ErrorS(err, "the driver ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, config, node string, gpus int, cdi string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", config)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	data := filepath.Join(kubelet, "plugins", driverName)
	plugin := &driver{node: node, gpus: gpus, prepared: filepath.Join(data, "prepared")}
	if err := errors.Join(os.MkdirAll(plugin.prepared, 0o750), os.MkdirAll(cdi, 0o755)); err != nil {
		return err
	}
	if err := plugin.writeCDI(cdi); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(node),
		kubeletplugin.DriverName(driverName),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(kubelet, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	)
	if err != nil {
		return err
	}
	defer helper.Stop()
	if err := helper.PublishResources(ctx, plugin.resources()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func deviceName(index int) string { return fmt.Sprintf("gpu-%d", index) }

func (d *driver) uuid(index int) string { return fmt.Sprintf("GPU-%s-%d", d.node, index) }

// resources are one pool with the node's name. Half of the GPUs are on each of two NUMA nodes.
func (d *driver) resources() resourceslice.DriverResources {
	var devices []resourceapi.Device
	for index := range d.gpus {
		devices = append(devices, resourceapi.Device{
			Name: deviceName(index),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"index": {IntValue: new(int64(index))},
				"uuid":  {StringValue: new(d.uuid(index))},
				"model": {StringValue: new(string(model))},
				"numa":  {IntValue: new(int64(index * 2 / d.gpus))},
			},
		})
	}
	slices := []resourceslice.Slice{{Devices: devices}}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{d.node: {Slices: slices}}}
}

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
	for index := range d.gpus {
		variable := fmt.Sprintf("GPU_DEVICE_%d=%s", index, d.uuid(index))
		devices = append(devices, device{Name: deviceName(index), Edits: edits{Env: []string{variable}}})
	}
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": cdiKind, "devices": devices})
	if err != nil {
		return err
	}
	fresh := filepath.Join(folder, driverName+".new")
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(folder, driverName+".json"))
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
		if given.Driver != driverName || given.Pool != d.node {
			continue
		}
		if err := d.hold(given, claim.UID); err != nil {
			return nil, err
		}
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{given.Request},
			PoolName:     given.Pool,
			DeviceName:   given.Device,
			CDIDeviceIDs: []string{cdiKind + "=" + given.Device},
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
	for index := range d.gpus {
		if given.Device == deviceName(index) {
			return d.note(given.Device, claim)
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
	for index := range d.gpus {
		file := filepath.Join(d.prepared, deviceName(index))
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
