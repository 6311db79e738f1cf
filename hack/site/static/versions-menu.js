// Fills the menu of versions from the list beside their folders, which is a script, so that it works from files, too.
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.getElementById("versions");
  if (!menu) return;
  const list = document.createElement("script");
  const root = menu.dataset.root || "./";
  list.src = root + "../versions.js";
  list.onload = () => {
    for (const version of window.siteVersions || []) {
      if (version.name === menu.dataset.here) continue;
      const option = document.createElement("option");
      option.textContent = version.name;
      // The same page where that version has it.
      const page = version.pages.includes(menu.dataset.page) ? menu.dataset.page : version.pages[0];
      option.value = root + "../" + version.name + "/" + page;
      menu.append(option);
    }
    menu.addEventListener("change", () => { if (menu.value.includes("/")) location.href = menu.value; });
  };
  document.head.append(list);
});
