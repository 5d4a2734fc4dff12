document.querySelectorAll("table.sortable thead button").forEach(function (button) {
  var head = button.parentNode;
  button.addEventListener("click", function () {
    var column = Array.from(head.parentNode.children).indexOf(head);
    var body = head.closest("table").tBodies[0];
    var down = head.getAttribute("aria-sort") === "ascending";
    var value = function (row) { return row.children[column].getAttribute("data-value"); };
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) {
      var p = value(a), q = value(b);
      if (p === null) { p = a.children[column].textContent; q = b.children[column].textContent; }
      var numbers = [p, q].every(function (one) { return one !== "" ? isFinite(one) : false; });
      var order = numbers ? p - q : p.localeCompare(q);
      return down ? -order : order;
    });
    rows.forEach(function (row) { body.appendChild(row); });
    Array.from(head.parentNode.children).forEach(function (one) { one.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  });
});
window.addEventListener("beforeprint", function () {
  document.querySelectorAll("details").forEach(function (part) { part.open = true; });
});
